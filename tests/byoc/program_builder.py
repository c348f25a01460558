"""Builds small region programs for the runtime's tests and runs them against numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import tvm_ffi

from tvm_mxplan.byoc.arrays import tensor_of
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape
from tvm_mxplan.opcheck import checking

Array = np.ndarray[Any, np.dtype[Any]]


class Builder:
    """Collects values and steps; every method returns the new value's id."""

    def __init__(self, name: str = "region") -> None:
        self.name = name
        self.values: list[ir.Value] = []
        self.steps: list[ir.Step] = []
        self.symbols: list[ir.SymbolBinding] = []
        self.constants: list[Array] = []
        self._counts = {"input": 0, "output": 0}

    def input(self, shape: Shape, layout: str = "", dtype: str = "float32") -> int:
        return self._numbered("input", shape, layout, dtype)

    def output(self, shape: Shape, layout: str = "", dtype: str = "float32") -> int:
        return self._numbered("output", shape, layout, dtype)

    def constant(self, data: Array, layout: str = "", shape: Shape | None = None) -> int:
        self.constants.append(np.ascontiguousarray(data))
        shape = shape or data.shape
        return self._add(
            f"c{len(self.constants)}",
            shape,
            data.dtype.name,
            "constant",
            layout,
            index=len(self.constants) - 1,
        )

    def local(self, shape: Shape, layout: str = "", **fields: Any) -> int:
        dtype = fields.pop("dtype", "float32")
        return self._add(f"t{len(self.values)}", shape, dtype, "local", layout, **fields)

    def view(self, of: int, shape: Shape, layout: str = "", offset: Any = 0) -> int:
        return self.local(shape, layout, alias_of=of, alias_offset=offset)

    def step(
        self, attrs: ir.Attributes, post_ops: Sequence[ir.PostOp] = (), **operands: int | Sequence[int]
    ) -> None:
        flat: list[ir.Operand] = []
        for role, ids in operands.items():
            flat += [ir.Operand(role, i) for i in ([ids] if isinstance(ids, int) else ids)]
        self.steps.append(ir.Step(f"s{len(self.steps)}", attrs, tuple(flat), tuple(post_ops)))

    def reorder(self, src: int, layout: str) -> int:
        """The value in another layout, as a new local."""
        dst = self.local(self.values[src].shape, layout)
        self.step(ir.Reorder(), src=src, dst=dst)
        return dst

    def finish(self, src: int) -> int:
        """The value in the plain layout, as the region's next output."""
        dst = self.output(self.values[src].shape)
        self.step(ir.Reorder(), src=src, dst=dst)
        return dst

    def build(self, arena_bytes: int = -1) -> ir.Program:
        return ir.Program(self.name, tuple(self.values), tuple(self.steps), tuple(self.symbols), arena_bytes)

    def module(self) -> Any:
        library.load()
        return library.create_module(self.name, self.build(), list(map(tensor_of, self.constants)))

    def run(self, *inputs: Array) -> Array:
        """Outcome of the one output; every step has been held against its reference too."""
        (dst,) = self.build().of_kind("output")
        return self.run_stored(*inputs, shape=[int(d) for d in self.values[dst].shape])  # type: ignore[arg-type]

    def run_stored(self, *inputs: Array, shape: Sequence[int]) -> Array:
        """The same with inputs and the output, of ``shape``, as their layouts store them."""
        (dst,) = (self.values[i] for i in self.build().of_kind("output"))
        dtype = numpy_type(dst.dtype)
        out = np.full(shape, 85 if dtype.kind in "iu" else np.nan, dtype)
        with checking() as checker:
            call(self.module(), self.name, *inputs, out)
        result = checker.result()
        assert result.steps == len(self.steps)
        assert result.first is None, result
        return out

    def _numbered(self, kind: ir.ValueKind, shape: Shape, layout: str, dtype: str) -> int:
        index = self._counts[kind]
        self._counts[kind] += 1
        return self._add(f"{kind}{index}", shape, dtype, kind, layout, index=index)

    def _add(
        self, name: str, shape: Shape, dtype: str, kind: ir.ValueKind, layout: str, **fields: Any
    ) -> int:
        shape = tuple(shape)
        self.values.append(ir.Value(name, shape, dtype, kind, layout or plain(len(shape)), **fields))
        return len(self.values) - 1


def plain(rank: int) -> str:
    return "abcdefgh"[:rank]


def call(module: Any, symbol: str, *arrays: Array | tvm_ffi.Shape) -> None:
    """Arrays are handed over in place, shapes as they are."""
    module[symbol](*[a if isinstance(a, tvm_ffi.Shape) else tensor_of(a) for a in arrays])


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def check(actual: Array, expected: Array, reduction: int = 1) -> None:
    """Equal up to float32 rounding over sums of ``reduction`` terms of order one."""
    assert actual.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-7 * scale * (8 + reduction**0.5))


# --- numpy references ------------------------------------------------------------------------------------


def windows(x: Array, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """[N, C, out..., kernel...] of a padded input."""
    axes = tuple(range(2, x.ndim))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=axes)
    index: tuple[slice, ...] = (slice(None), slice(None))
    index += tuple(slice(None, None, s) for s in strides) + tuple(slice(None, None, d) for d in dilation)
    return view[index]


def pad_spatial(x: Array, padding: Sequence[int], value: float = 0.0) -> Array:
    axes = x.ndim - 2
    pairs = [(0, 0), (0, 0), *zip(padding[:axes], padding[axes:], strict=True)]
    return np.pad(x, pairs, constant_values=value)


def convolution(x: Array, w: Array, attrs: ir.Convolution, bias: Array | None = None) -> Array:
    """``w`` is [O, I / groups, k...]."""
    axes = x.ndim - 2
    view = windows(pad_spatial(x, attrs.padding), w.shape[2:], attrs.strides, attrs.dilation).astype(
        "float64"
    )
    pieces = []
    for part, filters in zip(np.split(view, attrs.groups, 1), np.split(w, attrs.groups, 0), strict=True):
        contracted = list(range(2 + axes, 2 + 2 * axes))
        out = np.tensordot(part, filters.astype("float64"), ([1, *contracted], list(range(1, 2 + axes))))
        pieces.append(np.moveaxis(out, -1, 1))
    result = np.concatenate(pieces, 1)
    if bias is not None:
        result = result + bias.reshape(1, -1, *[1] * axes)
    return result.astype("float32")


def output_shape(x: Sequence[int], w: Sequence[int], attrs: ir.Convolution) -> tuple[int, ...]:
    axes = len(x) - 2
    spatial = [
        (size + attrs.padding[i] + attrs.padding[i + axes] - (w[2 + i] - 1) * attrs.dilation[i] - 1)
        // attrs.strides[i]
        + 1
        for i, size in enumerate(x[2:])
    ]
    return (x[0], w[0], *spatial)


def grouped(w: Array, groups: int) -> Array:
    """[O, I, k...] as [G, O / G, I, k...] if there is more than one group."""
    return w if groups == 1 else w.reshape(groups, w.shape[0] // groups, *w.shape[1:])


def offsets(sizes: Sequence[int]) -> list[int]:
    """Running sums of ``sizes``, from 0, without the last."""
    sums = [0]
    for size in sizes[:-1]:
        sums.append(sums[-1] + size)
    assert all(a < b for a, b in pairwise(sums))
    return sums
