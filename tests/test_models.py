"""Whole networks: every one offloaded whole, and its numbers those of onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.allocation import solve
from tvm_mxplan.core.ordering import choose_order
from tvm_mxplan.core.policies import POLICIES
from tvm_mxplan.passes.memory.liveness import arena_problem
from tvm_mxplan.passes.memory.order_steps import step_graph
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2

TOLERANCE = 1e-4


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", [*zoo.LIGHT, "mobilenet_v2", "resnet18"])
def test_numbers_and_coverage(name: str, batch: int) -> None:
    """One region, at least 99 % of the multiply-adds in it, no reference code, within 1e-4 (L2)."""
    model = zoo.load(name, batch=batch)
    executable = tvm_mxplan.compile(model)
    report = executable.report
    assert len(report.regions) == 1
    assert report.offloaded >= 0.99
    assert report.regions[0].reference_steps == ()
    inputs = zoo.random_inputs(model, batch=batch)
    actual = [tensor.numpy() for tensor in executable(**inputs)]
    assert worst_relative_l2(actual, onnxruntime_outputs(model, inputs)) <= TOLERANCE


@pytest.mark.parametrize("layouts", [policy for policy in POLICIES if policy != "cost"])
def test_every_layout_policy_gives_the_same_numbers(layouts: str) -> None:
    model = zoo.load("squeezenet")
    executable = tvm_mxplan.compile(model, options={"layouts": layouts})
    assert len(executable.report.regions) == 1
    inputs = zoo.random_inputs(model)
    actual = [tensor.numpy() for tensor in executable(**inputs)]
    assert worst_relative_l2(actual, onnxruntime_outputs(model, inputs)) <= TOLERANCE


def test_symbolic_batch() -> None:
    """One executable for every batch: a region specialises on sight."""
    model = zoo.load("mobilenet_v2", batch="N")
    executable = tvm_mxplan.compile(model)
    assert executable.report.offloaded == 1.0
    for batch in (1, 3, 8, 1):
        inputs = zoo.random_inputs(model, batch=batch)
        actual = [tensor.numpy() for tensor in executable(**inputs)]
        assert worst_relative_l2(actual, onnxruntime_outputs(model, inputs)) <= TOLERANCE


ACTIVATIONS = 4 * (56 * 56 * 256 + 56 * 56 * 128 + 28 * 28 * 128)
"""What the second stage's first block of ResNet-50 reads, and what its 3x3 convolution reads and writes."""


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Plans for two threads of the library, however many the machine or the environment gives it."""
    before = library.threads()
    library.set_threads(2)
    yield
    library.set_threads(before)


@pytest.mark.parametrize("layouts", ["cost", "channels_last"])
def test_resnet50_tensors(layouts: str) -> None:
    """As everybody gets it: residual sums in place, 5,218,304 bytes of activations; the rest is scratchpads.

    Scratchpads are those of Winograd's convolutions, which stand beside less than the most activations.
    """
    ex = tvm_mxplan.compile(zoo.load("resnet50"), options={"layouts": layouts})
    (region,), (memory,) = ex.report.regions, ex.report.memory
    assert sum("sum" in step.post_ops for step in region.steps) == 16
    assert any("winograd" in step.implementation for step in region.steps)
    assert memory.tensors == ACTIVATIONS == 5_218_304
    (program,) = decoded_programs(ex.module)
    steps = tuple(replace(step, scratchpad_bytes=0) for step in program.steps)
    assert solve(arena_problem(replace(program, steps=steps)).problem).height == ACTIVATIONS
    scratchpads = max(step.scratchpad_bytes for step in program.steps)
    assert memory.height == memory.lower_bound < ACTIVATIONS + scratchpads
    assert memory.height <= memory.stock


def test_resnet50_arena_without_winograd(two_threads: None) -> None:
    """12,288 bytes of scratchpad on top of the activations, and no order of the steps needs less.

    Each thread has a part of them.
    """
    options = {"layouts": "channels_last", "convolutions": "direct"}
    ex = tvm_mxplan.compile(zoo.load("resnet50"), options=options)
    (region,) = ex.report.regions
    (program,) = decoded_programs(ex.module)
    assert region.arena_bytes == ACTIVATIONS + 12_288
    assert choose_order(step_graph(program)).peak == region.arena_bytes
    assert choose_order(step_graph(program)).proven
