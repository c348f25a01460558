"""Sound programs to start from: every kind of step alone, and some together, as containers with constants."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Expr, Symbol
from tvm_mxplan.passes.memory.plan_memory import plan_memory
from tvm_mxplan.passes.region.annotate import annotate

sys.path.append(str(Path(__file__).resolve().parents[1] / "byoc"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "byoc" / "runtime"))
from program_builder import Builder, random
from sound_steps import SOUND

RELU = ir.EltwisePostOp("relu", 0.0, 0.0)
SAME = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)


def symbolic() -> Builder:
    """Convolutions, pooling, a concatenation, pads and slices over a batch that varies."""
    n = Symbol("n")
    b = Builder("symbolic")
    b.symbols.append(ir.SymbolBinding("n", 0, 0))
    src = b.reorder(b.input((n, 16, 9, 9)), "aBcd16b")
    conv, pool = b.local((n, 16, 9, 9), "aBcd16b"), b.local((n, 16, 4, 4), "aBcd16b")
    weights, post_ops = b.constant(random(16, 16, 3, 3)), [RELU, ir.BinaryPostOp("add", src)]
    b.step(SAME, post_ops, src=src, weights=weights, dst=conv)
    winograd = replace(SAME, algorithm="winograd_f4")
    b.step(winograd, post_ops, src=src, weights=weights, dst=b.local((n, 16, 9, 9), "aBcd16b"))
    b.step(ir.Pooling("max", (2, 2), (2, 2), (0, 0), (1, 1)), src=conv, dst=pool)
    whole = b.local((n, 32, Expr("//", Expr("+", 4, Expr("*", n, 4)), Expr("+", n, 1)), 4))
    b.step(ir.Concat(1), src=[pool, pool], dst=whole)
    b.step(ir.Pad((0, 0, 1, 1), 1.0), src=whole, dst=b.local((n, 32, 6, 6)))
    b.step(ir.Slice((0, 3, 1, 1)), src=whole, dst=b.local((n, 4, 2, 2)))
    b.step(ir.Shuffle(1, 4), src=whole, dst=b.output((n, 32, 4, 4)))
    return b


def in_place() -> Builder:
    """A residual block whose sum, relu and concatenation take no bytes of their own; planned."""
    b = Builder("planned")
    shape = (1, 16, 8, 8)
    src = b.reorder(b.input(shape), "aBcd16b")
    whole = b.local((1, 32, 8, 8), "aBcd16b")
    first, second = b.view(whole, shape, "aBcd16b"), b.view(whole, shape, "aBcd16b", offset=4096)
    b.step(SAME, [RELU], src=src, weights=b.constant(random(16, 16, 3, 3)), dst=first)
    inner = b.local(shape, "aBcd16b")
    b.step(SAME, src=first, weights=b.constant(random(16, 16, 3, 3, seed=1)), dst=inner)
    added = b.view(inner, shape, "aBcd16b")
    b.step(SAME, [ir.SumPostOp(), RELU], src=src, weights=b.constant(random(16, 16, 3, 3)), dst=added)
    b.step(ir.Eltwise("tanh", 0.0, 0.0), src=added, dst=second)
    b.step(ir.Concat(1), src=[first, second], dst=whole)
    b.finish(whole)
    return b


def containers() -> list[bytes]:
    """The programs as modules are saved."""
    library.load()
    made = [bytes(symbolic().module()["mxplan.save"]())]
    block = in_place()
    backend = OneDNN()
    planned = plan_memory(annotate(block.build(), backend), backend).program
    assert planned.arena_bytes > 0
    # The drivers give any numbers as indices and resolve by one library, so no steps of others.
    alone = [SOUND[name].program() for name in SOUND if not SOUND[name].library]
    for program, constants in [(planned, block.constants), *alone]:
        made.append(bytes(library.create_module(program.name, program, constants)["mxplan.save"]()))
    return made
