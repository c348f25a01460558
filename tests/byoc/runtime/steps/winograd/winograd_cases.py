"""Convolutions by Winograd's algorithms beside the direct sum in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from blocks import BLOCKED
from program_builder import Array, Builder, convolution, grouped, output_shape, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing.reference import relative_l2

ALGORITHMS: tuple[ir.ConvolutionAlgorithm, ...] = ("winograd_f2", "winograd_f4")


ROUNDING = 5e-7  # of float32 sums, in the L2 norm


RELU = ir.EltwisePostOp("relu", 0.0, 0.0)


LAYOUTS = sorted({"acdb", "aBcd16b", BLOCKED})


PAIRS = [(BLOCKED, BLOCKED), ("acdb", BLOCKED), (BLOCKED, "acdb"), ("aBcd16b", "aBcd16b")]


def attributes(
    algorithm: ir.ConvolutionAlgorithm, padding: tuple[int, ...] = (1, 1, 1, 1), groups: int = 1
) -> ir.Convolution:
    return ir.Convolution((1, 1), padding, (1, 1), groups, algorithm)


def filters(outputs: int, inputs: int, size: int = 3) -> Array:
    return random(outputs, inputs, size, size) / np.float32(size * inputs**0.5)


class Case:
    """input -> reorder -> Winograd convolution with bias and post-ops -> reorder -> output.

    Parameters
    ----------
    varying : the layout of filters that are an input; '' makes them a constant.
    """

    def __init__(
        self,
        algorithm: ir.ConvolutionAlgorithm,
        src: tuple[int, ...],
        outputs: int,
        padding: tuple[int, ...] = (1, 1, 1, 1),
        layouts: tuple[str, str] = ("acdb", "acdb"),
        size: int = 3,
        groups: int = 1,
        varying: str = "",
    ) -> None:
        self.varying = varying
        self.attrs = attributes(algorithm, padding, groups)
        self.x, self.bias = random(*src), random(outputs, seed=1)
        self.w = filters(outputs, src[1] // groups, size)
        self.shape = output_shape(src, self.w.shape, self.attrs)
        self.builder = Builder("case")
        self.layout = layouts[1]
        self.src = self.builder.reorder(self.builder.input(src), layouts[0])
        self.dst = self.builder.local(self.shape, self.layout)

    def convolve(self, *post_ops: ir.PostOp) -> Case:
        b = self.builder
        filters, bias = grouped(self.w, self.attrs.groups), b.constant(self.bias)
        weights = b.reorder(b.input(filters.shape), self.varying) if self.varying else b.constant(filters)
        b.step(self.attrs, post_ops, src=self.src, weights=weights, bias=bias, dst=self.dst)
        b.finish(self.dst)
        return self

    def direct(self) -> Array:
        return convolution(self.x, self.w, self.attrs, self.bias)

    def info(self) -> StepInfo:
        (info,) = (
            info
            for step, info in zip(
                self.builder.build().steps, library.describe(self.builder.build()).steps, strict=True
            )
            if step.kind == "convolution"
        )
        return info

    def check(self, expected: Array, *inputs: Array) -> None:
        info = self.info()
        assert (info.implementation, info.error) == (self.attrs.algorithm, "")
        assert 0 < info.relative_error < 1e-5
        filters = (grouped(self.w, self.attrs.groups),) if self.varying else ()
        error = relative_l2(self.builder.run(self.x, *inputs, *filters), expected)
        assert error <= info.relative_error + ROUNDING


def run_with_less(script: str, isa: str) -> None:
    """Fail unless a script runs where oneDNN has fewer instructions; it prints the instruction set last."""
    here = Path(__file__).resolve().parent
    path = os.pathsep.join(map(str, (here, *here.parents[:4])))
    environ = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa, "PYTHONPATH": path}
    answer = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() in ("cpu_isa_avx2", "cpu_isa_sse41", "cpu_isa_avx")
