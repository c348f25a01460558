"""Sound programs to start from: every kind of step alone, and some together, as containers with constants."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.joined import joined
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Expr, Symbol
from tvm_mxplan.passes.memory.plan_memory import plan_memory
from tvm_mxplan.passes.region.annotate import annotate

sys.path.append(str(Path(__file__).resolve().parents[1] / "byoc"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "byoc" / "runtime"))
from program_builder import Builder, random
from sound_steps import SOUND, Sound

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
    varying = b.input((16, 16, 3, 3), "ABcd16b16a")
    b.step(winograd, src=src, weights=varying, dst=b.local((n, 16, 9, 9), "aBcd16b"))
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


def two_libraries() -> Builder:
    """Steps of two libraries that hand tensors to each other: a choice, a cast, rows, integers; planned."""
    b = Builder("two_libraries")
    shape, rows = (2, 16, 6, 5), (2, 16, 4, 5)
    src = b.input(shape)
    conv, zero = b.local(shape, "acdb"), b.constant(np.zeros((1, 1, 1, 1), np.float32))
    b.step(SAME, [RELU], src=src, weights=b.constant(random(16, 16, 3, 3)), dst=conv)
    truth, chosen = b.local(shape, "acdb", dtype="bool"), b.local(shape, "acdb")
    _host(b, ir.Compare("less"), src=conv, src1=zero, dst=truth)
    _host(b, ir.Select(), condition=truth, src=zero, src1=conv, dst=chosen)
    plain, taken = b.local(shape), b.local(rows)
    b.step(ir.Reorder(), src=chosen, dst=plain)
    _host(b, ir.Gather(2), src=plain, indices=b.input((4,), dtype="int64"), dst=taken)
    whole, back, wide = b.local(rows, dtype="int32"), b.local(rows), b.local((2, 16, 8, 10))
    _host(b, ir.Cast(), src=taken, dst=whole)
    _host(b, ir.Cast(), src=whole, dst=back)
    _host(b, ir.Resize("cubic", "half_pixel", "floor", -0.75, False), src=back, dst=wide)
    _host(b, ir.StridedSlice((0, 15, 1, 0), (1, -3, 2, 3)), src=wide, dst=b.output((2, 6, 4, 4)))
    scales = {
        "src_scale": b.constant(np.float32([0.02])),
        "dst_scale": b.constant(np.float32([0.05])),
        "src_zero_point": b.constant(np.int32([3])),
        "dst_zero_point": b.constant(np.int32([128])),
    }
    made = {"dst_scale": scales["src_scale"], "dst_zero_point": scales["src_zero_point"]}
    short = b.local(shape, "acdb", dtype="uint8")
    b.step(ir.Quantization(1), src=conv, dst=short, **made)
    weights = b.constant(np.random.default_rng(2).integers(-127, 128, (16, 16, 3, 3)).astype("int8"))
    product = b.output(shape, "acdb", "uint8")
    scales["weights_scale"] = b.constant(np.full(16, 0.01, np.float32))
    b.step(SAME, [RELU], src=short, weights=weights, dst=product, **scales)
    return b


def _host(b: Builder, attrs: ir.Attributes, **operands: int) -> None:
    b.step(attrs, **operands)
    b.steps[-1] = replace(b.steps[-1], library="host")


def sound_steps() -> list[Sound]:
    """Every kind of step alone, by each library of the processor that has it."""
    both = [SOUND[name] for name in ("binary", "reduction", "concat", "reorder")]
    both.append(replace(SOUND["eltwise"], attrs=ir.Eltwise("erf", 0.0, 0.0)))
    return [*SOUND.values(), *(replace(sound, library="host") for sound in both)]


def containers() -> list[bytes]:
    """The programs as modules are saved."""
    library.load()
    made = [bytes(symbolic().module()["mxplan.save"]())]
    block = in_place()
    backend = OneDNN()
    planned = plan_memory(annotate(block.build(), backend), backend).program
    assert planned.arena_bytes > 0
    mixed = two_libraries()
    (both, *_) = joined([registry.planner(name) for name in registry.DEFAULT])
    laid = plan_memory(annotate(mixed.build(), both), both).program
    alone = [sound.program() for sound in sound_steps()]
    for program, constants in [(planned, block.constants), (laid, mixed.constants), *alone]:
        made.append(bytes(library.create_module(program.name, program, constants)["mxplan.save"]()))
    return made
