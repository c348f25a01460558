"""Multiply-adds of steps, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.core.multiply_adds import of_program
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Symbol


def program(attrs: ir.Attributes, dst: tuple[object, ...], **operands: tuple[object, ...]) -> ir.Program:
    b = ProgramBuilder("one")
    ports = [(role, b.port("input", role, shape, "float32")) for role, shape in operands.items()]  # type: ignore[arg-type]
    b.step("step", attrs, dst, ports)  # type: ignore[arg-type]
    return b.finish()


CONVOLUTION = {"strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1)}


def convolution(groups: int = 1) -> ir.Convolution:
    return ir.Convolution(*CONVOLUTION.values(), groups)  # type: ignore[arg-type]


def deconvolution(groups: int = 1) -> ir.Deconvolution:
    return ir.Deconvolution(*CONVOLUTION.values(), groups)  # type: ignore[arg-type]


def filters(groups: int = 1) -> ir.ConvolutionBackwardWeights:
    return ir.ConvolutionBackwardWeights(*CONVOLUTION.values(), groups)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (program(convolution(), (2, 12, 7, 7), src=(2, 6, 9, 8), weights=(12, 6, 3, 2)), 2 * 12 * 49 * 36),
        (program(convolution(2), (2, 12, 7, 7), src=(2, 6, 9, 8), weights=(2, 6, 3, 3, 2)), 2 * 12 * 49 * 18),
        (program(deconvolution(), (2, 5, 11, 9), src=(2, 6, 9, 8), weights=(5, 6, 3, 2)), 2 * 6 * 72 * 5 * 6),
        (
            program(deconvolution(2), (2, 10, 11, 9), src=(2, 6, 9, 8), weights=(2, 5, 3, 3, 2)),
            2 * 6 * 72 * 5 * 6,
        ),
        (program(filters(), (12, 6, 3, 2), src=(2, 6, 9, 8), gradient=(2, 12, 7, 7)), 2 * 12 * 49 * 36),
        (program(filters(2), (2, 6, 3, 3, 2), src=(2, 6, 9, 8), gradient=(2, 12, 7, 7)), 2 * 12 * 49 * 18),
        (program(ir.MatMul(), (3, 4, 5), src=(3, 4, 7), weights=(1, 7, 5)), 3 * 4 * 5 * 7),
        (
            program(
                ir.Attention(1.0), (2, 7, 4, 5), src=(2, 4, 7, 16), key=(2, 4, 9, 16), value=(2, 4, 9, 5)
            ),
            2 * 4 * 7 * 9 * (16 + 5),
        ),
        (
            program(
                ir.SqueezeExcite("relu", 0.0, 0.0, "logistic", 0.0, 0.0), (3, 8, 7, 7),
                src=(3, 8, 7, 7), weights=(5, 8), bias=(5,), gate_weights=(8, 5),
            ),
            3 * 2 * 8 * 5,
        ),
        (program(ir.InnerProduct(), (4, 5), src=(4, 6, 3, 2), weights=(5, 6, 3, 2)), 4 * 5 * 36),
        (program(convolution(), (Symbol("n"), 12, 7, 7), src=(Symbol("n"), 6, 9, 8), weights=(12, 6, 3, 2)),
         12 * 49 * 36),
        (program(ir.Eltwise("relu", 0.0, 0.0), (4, 5), src=(4, 5)), 0),
    ],
)  # fmt: skip
def test_steps(given: ir.Program, count: int) -> None:
    assert of_program(given) == count


def test_steps_are_added_up() -> None:
    b = ProgramBuilder("two")
    x = b.port("input", "x", (4, 7), "float32")
    weights = [b.constant(np.zeros(shape, "float32")) for shape in ((7, 5), (5, 3))]
    middle = b.step("one", ir.MatMul(), (4, 5), [("src", x), ("weights", weights[0])])
    b.step("two", ir.MatMul(), (4, 3), [("src", middle), ("weights", weights[1])])
    assert of_program(b.finish()) == 4 * 5 * 7 + 4 * 3 * 5
