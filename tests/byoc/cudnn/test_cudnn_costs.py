"""Rates of GPUs by their properties, and the roofline of steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tvm_mxplan.byoc.cudnn.costs import cost
from tvm_mxplan.byoc.cudnn.device import read_device
from tvm_mxplan.byoc.cudnn.rates import rates_of
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts

DEVICES = Path(__file__).resolve().parent / "devices"


@pytest.mark.parametrize(
    "name, single, half, memory",
    # TFLOP/s and TB/s as NVIDIA publishes them for A100 SXM, H200 SXM, B200.
    [("a100", 19.5, 312, 1.6), ("h200", 67, 989, 4.1), ("b200", 75, 2250, 8.0)],
)
def test_rates_are_near_those_that_are_published(
    name: str, single: float, half: float, memory: float
) -> None:
    rates = rates_of(read_device(DEVICES / f"{name}.json")).machine
    assert rates.gflops("float32") / 1e3 == pytest.approx(single, rel=0.15)
    assert rates.gflops("float16") / 1e3 == pytest.approx(half, rel=0.15)
    assert rates.memory.copied / 1e3 == pytest.approx(memory, rel=0.15)


def convolution(channels: int, dtype: str) -> StepFacts:
    values = (
        ir.Value("x", (1, channels, 56, 56), dtype, "input", "acdb", 0),
        ir.Value("w", (channels, channels, 3, 3), dtype, "constant", "acdb", 0),
        ir.Value("y", (1, channels, 56, 56), dtype, "local", "acdb"),
    )
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    operands = (ir.Operand("src", 0), ir.Operand("weights", 1), ir.Operand("dst", 2))
    step = ir.Step("c", attrs, operands)
    return StepFacts(ir.Program("p", values, (step,)), step, ("acdb", "acdb", "acdb"))


def test_products_take_what_they_compute() -> None:
    rates = rates_of(read_device(DEVICES / "h200.json")).machine
    exact = cost(convolution(512, "float32"), rates, False) - rates.start_us
    operations = 2 * 56 * 56 * 512 * 512 * 9
    assert exact == pytest.approx(operations / (0.5 * rates.gflops("float32")) / 1e3)
    assert cost(convolution(512, "float32"), rates, True) < cost(convolution(512, "float32"), rates, False)
    assert cost(convolution(512, "float16"), rates, False) < cost(convolution(512, "float32"), rates, True)


def test_small_steps_take_what_starting_them_does() -> None:
    rates = rates_of(read_device(DEVICES / "h200.json")).machine
    assert cost(convolution(8, "float16"), rates, False) == pytest.approx(rates.start_us, rel=0.1)
