"""Region programs survive their byte format, and nothing else passes for one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Dim, Expr, Symbol

BATCH = Symbol("n")
PROGRAM = ir.Program(
    "region",
    (
        ir.Value("x", (BATCH, 3, Expr("//", Symbol("h"), 2)), "float32", "input", "abc", 0),
        ir.Value("w", (8, 3, 3), "float32", "constant", "abc", 0),
        ir.Value("r", (BATCH, 8, 4), "float32", "local", "aBc8b", offset=64, nbytes=128),
        ir.Value("y", (BATCH, 8, 4), "float32", "local", "aBc8b", alias_of=2, alias_offset=0),
        ir.Value("v", (8,), "float32", "constant", "a", 1),
    ),
    (
        ir.Step(
            "conv",
            ir.Convolution((1,), (1, 0), (2,), 1),
            (
                ir.Operand("src", 0),
                ir.Operand("weights", 1),
                ir.Operand("depthwise_weights", 1),
                ir.Operand("dst", 3),
            ),
            (
                ir.SumPostOp(0.5),
                ir.BinaryPostOp("mul", 2),
                ir.EltwisePostOp("clip_v2", 0.0, 6.0),
                ir.DepthwisePostOp(3, 2, 1),
            ),
            "jit",
            0,
            256,
            ("brg:any", "winograd_f4"),
        ),
        ir.Step(
            "norm",
            ir.BatchNormalization(1e-5, True),
            (
                *(ir.Operand(role, 4) for role in ("mean", "variance", "scale", "shift")),
                ir.Operand("src", 3),
                ir.Operand("dst", 2),
            ),
        ),
    ),
    (ir.SymbolBinding("n", 0, 0), ir.SymbolBinding("h", 0, 2), ir.SymbolBinding("t", -1, 3)),
    4096,
)


def test_round_trip() -> None:
    assert codec.decode(codec.encode(PROGRAM)) == PROGRAM


def test_every_field_of_a_step_comes_back() -> None:
    step = ir.Step(
        "name", ir.Reorder(), (ir.Operand("src", 0), ir.Operand("dst", 1)),
        implementation="a", scratchpad_offset=64, scratchpad_bytes=3, refused=("b", "c"), prepared=b"d",
        library="host",
    )  # fmt: skip
    values = tuple(ir.Value(kind, (2,), "float32", kind, "a", 0) for kind in ("input", "output"))
    program = ir.Program("region", values, (step,), arena_bytes=128)
    assert codec.decode(codec.encode(program)) == program


@pytest.mark.parametrize("what", ["attribute", "post-op"])
def test_types_that_there_are_not_are_named(what: str) -> None:
    reader = codec._Reader(b"\x63")
    with pytest.raises(codec.DecodeError, match=f"^{what} type 99 at byte 0$"):
        reader.attribute() if what == "attribute" else reader.post_op()


def test_every_truncation_is_refused() -> None:
    data = codec.encode(PROGRAM)
    for length in range(len(data)):
        with pytest.raises(codec.DecodeError):
            codec.decode(data[:length])


def test_what_follows_the_end_is_refused() -> None:
    with pytest.raises(codec.DecodeError, match="1 bytes after the end"):
        codec.decode(codec.encode(PROGRAM) + b"\0")


@pytest.mark.parametrize("data, reason", [(b"", "ends at byte 0"), (b"PK\3\4" * 8, "not a region program")])
def test_foreign_bytes_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(codec.DecodeError, match=reason):
        codec.decode(data)


def test_another_version_is_named() -> None:
    data = bytearray(codec.encode(PROGRAM))
    data[4] = 99
    with pytest.raises(codec.DecodeError, match=f"version 99, this build reads {ir.VERSION}"):
        codec.decode(bytes(data))


def test_a_symbol_beyond_the_last_is_refused() -> None:
    """The number of a symbol is one below their count at most."""
    data = codec.encode(PROGRAM)
    first = data.index(b"\x01" + (0).to_bytes(4, "little"), data.index(b"float32"))
    for number in (3, 4, 2**32 - 1):
        damaged = data[: first + 1] + number.to_bytes(4, "little") + data[first + 5 :]
        with pytest.raises(codec.DecodeError, match=f"symbol {number} of 3"):
            codec.decode(damaged)


@pytest.mark.parametrize("index", [3, 4, 2**32 - 1])
def test_a_symbol_that_is_not_there_is_refused(index: int) -> None:
    """The byte in which two programs differ, in one of which a dimension is another symbol, is its number."""
    data = codec.encode(PROGRAM)
    shape = PROGRAM.values[0].shape
    other = codec.encode(PROGRAM.with_value(0, shape=(Symbol("h"), *shape[1:])))
    (at,) = [at for at, (a, b) in enumerate(zip(data, other, strict=True)) if a != b]
    assert (data[at : at + 4], other[at : at + 4]) == (bytes(4), b"\1\0\0\0")
    with pytest.raises(codec.DecodeError):
        codec.decode(data[:at] + index.to_bytes(4, "little") + data[at + 4 :])


@pytest.mark.parametrize("side", ["left", "right"])
def test_dimensions_are_nested_so_deep_and_no_deeper(side: str) -> None:
    def nested(depth: int) -> ir.Program:
        dim: Dim = BATCH
        for _ in range(depth):
            dim = Expr("+", dim, 1) if side == "left" else Expr("+", 1, dim)
        return PROGRAM.with_value(0, shape=(dim, 3, 4))

    assert codec.decode(codec.encode(nested(64))) == nested(64)
    for depth in (65, 200):
        with pytest.raises(codec.DecodeError, match="nested too deeply"):
            codec.decode(codec.encode(nested(depth)))


def test_flipped_bytes_give_a_program_or_a_decode_error() -> None:
    """Nothing but DecodeError escapes: damaged bytes are the user's files, not our mistakes."""
    data = codec.encode(PROGRAM)
    refused = 0
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        try:
            codec.decode(bytes(damaged))
        except codec.DecodeError:
            refused += 1
    assert refused > len(data) // 4


def test_counts_up_to_what_the_bytes_can_hold() -> None:
    """Post-ops at the very end, of the fewest bytes that there are; names without a letter."""
    last = PROGRAM.steps[1]
    for kind in ({"post_ops": (ir.SumPostOp(1.0),) * 40}, {"refused": ("",) * 400}):
        step = replace(last, **kind)
        written = codec._Writer({})
        written.step(step)
        assert codec._Reader(bytes(written.buffer)).step() == step
    three = (3).to_bytes(4, "little")
    assert codec._Reader(three + bytes(12)).count(4) == 3
    with pytest.raises(codec.DecodeError, match="count 3 at byte 0 is more than the data can hold"):
        codec._Reader(three + bytes(11)).count(4)
