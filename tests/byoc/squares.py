"""Steps that square what they read, and a whole that two of them write."""

from __future__ import annotations

from program_builder import Builder

from tvm_mxplan.core.program import program as ir


def square(b: Builder, src: int, dst: int) -> int:
    b.step(ir.Eltwise("square", 0.0, 0.0), src=src, dst=dst)
    return dst


def pieces_of_a_whole() -> ir.Program:
    """Two inputs of 16 x 8 x 8 are squared into the halves of one value, which leaves as the output."""
    b = Builder("pieces")
    whole = b.local((32, 8, 8))
    for at in range(2):
        square(b, b.input((16, 8, 8)), b.view(whole, (16, 8, 8), offset=4096 * at))
    b.finish(whole)
    return b.build()
