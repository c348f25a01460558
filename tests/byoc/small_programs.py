"""Programs of a few steps for the tests of folding and fusion: built, rewritten, and run both ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm_ffi

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.rewrites.fusion import fuse
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder

Build = Callable[["Small"], int]


class Small(ProgramBuilder):
    """A builder with shorthands; every method returns the new value."""

    def __init__(self, shape: tuple[int, ...], *inputs: tuple[int, ...]) -> None:
        super().__init__("small")
        self.random = np.random.default_rng(0)
        self.inputs = [self.port("input", f"x{i}", dims, "float32") for i, dims in enumerate(inputs)]
        self.output = self.port("output", "y", shape, "float32")

    def numbers(self, *shape: int) -> int:
        """A constant of numbers from 0.5 to 1.5."""
        return self.constant(self.random.uniform(0.5, 1.5, shape).astype("float32"))

    def shape(self, value: int) -> tuple[int, ...]:
        return self.values[value].shape  # type: ignore[return-value]

    def conv(self, src: int, channels: int, kernel: int = 1) -> int:
        batch, inputs, *size = self.shape(src)
        weights = self.numbers(channels, inputs, kernel, kernel)
        attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
        shape = (batch, channels, *(extent - kernel + 1 for extent in size))
        return self.step("convolution", attrs, shape, [("src", src), ("weights", weights)])

    def matmul(self, src: int, columns: int) -> int:
        *leading, depth = self.shape(src)
        weights = self.numbers(*(1,) * (len(leading) - 1), depth, columns)
        return self.step("matmul", ir.MatMul(), (*leading, columns), [("src", src), ("weights", weights)])

    def eltwise(self, src: int, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> int:
        return self.step("eltwise", ir.Eltwise(algorithm, alpha, beta), self.shape(src), [("src", src)])

    def binary(self, src: int, src1: int, algorithm: str = "add") -> int:
        return self.step("binary", ir.Binary(algorithm), self.shape(src), [("src", src), ("src1", src1)])

    def pad(self, src: int, begin: tuple[int, ...], end: tuple[int, ...], value: float = 0.0) -> int:
        shape = tuple(b + n + e for b, n, e in zip(begin, self.shape(src), end, strict=True))
        return self.step("pad", ir.Pad(begin, value), shape, [("src", src)])


def fused(builder: Small, result: int) -> ir.Program:
    """The program after folding and fusion, having shown that it computes what it did before."""
    builder.write_output(result, builder.output)
    before, constants = builder.finish(), list(builder.constants)
    after, smaller, _ = fuse(before, constants)
    expected, actual = run(before, constants), run(after, smaller)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    return after


def kinds(program: ir.Program) -> list[str]:
    return [step.kind for step in program.steps]


def chain(step: ir.Step) -> list[str]:
    """Algorithms of a step's post-ops."""
    return [post_op.algorithm for post_op in step.post_ops]  # type: ignore[union-attr]


def run(program: ir.Program, constants: list[np.ndarray]) -> np.ndarray:
    """The result of a program on random inputs."""
    random = np.random.default_rng(1)
    inputs = [
        random.standard_normal(program.values[number].shape).astype("float32")  # type: ignore[arg-type]
        for number in program.of_kind("input")
    ]
    (output,) = program.of_kind("output")
    result = np.full(program.values[output].shape, np.nan, "float32")  # type: ignore[arg-type]
    module = library.create_module(program.name, program, constants)
    module[program.name](*[tvm_ffi.from_dlpack(array) for array in (*inputs, result)])
    return result
