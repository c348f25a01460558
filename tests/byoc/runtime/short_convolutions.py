"""Single convolutions in bfloat16 on stored images, held against float64 and compared with the library's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from program_builder import Array, Builder, call, output_shape

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir

F32, BF16 = "float32", "bfloat16"
LAST, BLOCKS = "acdb", "aBcd16b"
RELU, SWISH = ir.EltwisePostOp("relu", 0.0, 0.0), ir.EltwisePostOp("swish", 1.0, 0.0)
CLIP, HARD = ir.EltwisePostOp("clip", -0.5, 0.75), ir.EltwisePostOp("hardswish", 1 / 6, 0.5)
LEAKY, GELU = ir.EltwisePostOp("relu", 0.1, 0.0), ir.EltwisePostOp("gelu_erf", 0.0, 0.0)


class ShortConvolution(ABC):
    """input -> convolution -> output; what is ``added`` stands in front of the other post-ops.

    A test's dataclass has the fields, and says what filters and attributes are.
    """

    src: tuple[int, ...]
    dst: str
    weights_dtype: str
    layout: str
    bias: bool
    post_ops: tuple[ir.PostOp, ...]
    added: str
    constant: bool

    @property
    @abstractmethod
    def filters(self) -> tuple[int, ...]:
        """Their shape."""

    @property
    @abstractmethod
    def attrs(self) -> ir.Convolution: ...

    @property
    def src_layout(self) -> str:
        return self.layout

    @property
    def outputs(self) -> int:
        grouped = self.attrs.groups > 1
        return self.filters[0] * (self.filters[1] if grouped else 1)

    @property
    def result(self) -> tuple[int, ...]:
        return output_shape(self.src, (self.outputs, 1, *self.filters[-2:]), self.attrs)

    @property
    def stored(self) -> tuple[int, ...]:
        n, c, h, w = self.result
        return (n, h, w, c) if self.layout == LAST else (n, -(-c // 16), h, w, 16)

    def builder(self) -> Builder:
        rng, b = np.random.default_rng([5, *self.src, *self.filters]), Builder()
        terms = np.prod(self.filters[1 + (self.attrs.groups > 1) :])
        typed = (rng.standard_normal(self.filters) / np.sqrt(terms)).astype(numpy_type(self.weights_dtype))
        plain = "abcde"[: len(self.filters)]
        weights = b.constant(typed) if self.constant else b.input(self.filters, plain, self.weights_dtype)
        roles: dict[str, Any] = {"src": b.input(self.src, self.src_layout, BF16), "weights": weights}
        if self.bias:
            roles["bias"] = b.constant(rng.standard_normal(self.outputs).astype(F32))
        post_ops = list(self.post_ops)
        if self.added == "like dst":
            post_ops.insert(0, ir.BinaryPostOp("add", b.input(self.result, self.layout, self.dst)))
        elif self.added == "channels":
            row = rng.uniform(0.5, 1.5, (1, self.outputs, 1, 1)).astype(F32)
            post_ops.insert(0, ir.BinaryPostOp("mul", b.constant(row)))
        elif self.added == "sum":
            post_ops.insert(0, ir.SumPostOp(0.5))
            before = b.local(self.result, self.layout, dtype=self.dst)
            b.step(ir.Reorder(), src=b.input(self.result, self.layout, self.dst), dst=before)
            roles["dst"] = b.view(before, self.result, self.layout)
            b.values[-1] = replace(b.values[-1], dtype=self.dst)
            b.step(self.attrs, post_ops, **roles)
            b.step(ir.Reorder(), src=roles["dst"], dst=b.output(self.result, self.layout, self.dst))
            return b
        roles["dst"] = b.output(self.result, self.layout, self.dst)
        b.step(self.attrs, post_ops, **roles)
        return b

    def info(self) -> StepInfo:
        steps = library.describe(self.builder().build()).steps
        return steps[1 if self.added == "sum" else 0]

    def run(self) -> Array:
        rng = np.random.default_rng(7)
        n, c, h, w = self.src
        inputs = [rng.standard_normal((n, h, w, c)).astype(numpy_type(BF16))]
        if self.added in ("like dst", "sum"):
            added = rng.standard_normal(self.stored).astype(numpy_type(self.dst))
            if self.layout == BLOCKS and self.outputs % 16:
                added[:, -1, ..., self.outputs % 16 :] = 0  # as whoever stores it leaves it
            inputs.append(added)
        return self.builder().run_stored(*inputs, shape=self.stored)

    def result_of(self, src: Array) -> Array:
        """The result for ``src``, in float64; no reference is run."""
        result = np.full(self.stored, np.nan, numpy_type(self.dst))
        b = self.builder()
        call(b.module(), b.name, src, result)
        return result.astype("float64")


def assert_one_rounding_apart(ours: Array, theirs: Array, dst: str) -> None:
    one = 2.0**-7 if dst == BF16 else 2.0**-20  # sums in another order
    apart = np.abs(ours.astype("float64") - theirs.astype("float64"))
    assert np.all(apart <= one * (1.0 + np.abs(theirs.astype("float64"))))
