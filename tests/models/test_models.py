"""Whole networks: every one offloaded whole, its numbers those of onnxruntime and of sums in float64.

Each is made and compiled once with the default options, for all tests that ask something of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
import pytest
from reorders import assert_at_most_one_and_none_in_the_middle

import tvm_mxplan
from tvm_mxplan import opcheck
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.allocation import solve
from tvm_mxplan.core.ordering import choose_order
from tvm_mxplan.core.policies import POLICIES
from tvm_mxplan.execution.executable import Executable
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.passes.memory.liveness import arena_problem
from tvm_mxplan.passes.memory.order_steps import step_graph
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.float64 import float64_outputs
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2

TOLERANCE = 1e-4


@dataclass(frozen=True)
class Network:
    """A model of the zoo, compiled with the default options."""

    name: str
    model: onnx.ModelProto
    executable: Executable


@pytest.fixture(scope="module")
def network(request: pytest.FixtureRequest) -> Network:
    """The network that the test is parametrised with; pytest puts the tests of one together."""
    model = zoo.load(request.param)
    return Network(request.param, model, tvm_mxplan.compile(model))


SLOW = ("bvlc_alexnet", "inception_v2", "vgg19", "zfnet512")
"""Like others of the zoo as a graph, and slower to compile and run."""


def networks(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("network", _with_marks(names), indirect=True)


def _with_marks(names: Iterable[str], slow: Collection[str] = SLOW) -> list[object]:
    return [pytest.param(name, marks=pytest.mark.slow if name in slow else ()) for name in names]


def assert_numbers_and_coverage(model: onnx.ModelProto, executable: Executable) -> None:
    """One region, at least 99 % of the multiply-adds in it, no reference code, within 1e-4 (L2)."""
    report = executable.report
    assert len(report.regions) == 1
    assert report.offloaded >= 0.99
    assert report.regions[0].reference_steps == ()
    inputs = zoo.random_inputs(model)
    actual = [tensor.numpy() for tensor in executable(**inputs)]
    assert worst_relative_l2(actual, onnxruntime_outputs(model, inputs)) <= TOLERANCE


@networks(*zoo.LIGHT, "mobilenet_v2", "resnet18")
def test_numbers_and_coverage(network: Network) -> None:
    assert_numbers_and_coverage(network.model, network.executable)


@networks(*(name for name in zoo.LIGHT if name != "squeezenet"), "mobilenet_v2", "resnet18")
def test_at_most_one_reorder_and_none_in_the_middle(network: Network) -> None:
    assert_at_most_one_and_none_in_the_middle(network.executable.report)


@networks("squeezenet")
def test_a_reorder_in_the_middle_where_layers_behind_it_gain_more(network: Network) -> None:
    """By default rates its layers of 13x13 gain more than 2 % in channels last, for 5 us and 65 kB."""
    (region,) = network.executable.report.regions
    if OneDNN().block != 16:
        pytest.skip("kernels for AVX2 gain less there by the model of costs")
    (reorder,) = region.reorders
    assert (reorder.source_layout, reorder.target_layout) == ("aBcd16b", "acdb")
    assert 0 < reorder.cost_us < 10


@networks(*(name for name in zoo.LIGHT if name not in ("squeezenet", "vgg19")))
def test_every_step_is_right(network: Network) -> None:
    (region,) = network.executable.report.regions
    result = opcheck.check(network.executable, **zoo.random_inputs(network.model))
    assert result.steps == len(region.steps)
    assert result.first is None, result


SMALL = (zoo.TINY, "squeezenet", "shufflenet", "mobilenet_v2", "resnet18", "inception_v1")
LARGE = ("resnet50", "densenet121", "inception_v2", "bvlc_alexnet", "vgg19")


@pytest.mark.parametrize("network", _with_marks([*SMALL, *LARGE], LARGE), indirect=True)
def test_exact_to_float32(network: Network) -> None:
    """Against every sum in float64; onnxruntime is held to it too."""
    inputs = zoo.random_inputs(network.model, seed=4)
    exact = float64_outputs(network.model, inputs)
    assert network.executable.report.regions, "something runs in oneDNN"
    ours = worst_relative_l2([tensor.numpy() for tensor in network.executable(**inputs)], exact)
    assert 0 < ours < 1e-4
    assert worst_relative_l2(onnxruntime_outputs(network.model, inputs), exact) < 1e-4


LOAD = """
import json, sys
import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.report.inspection import decoded_programs
programs = decoded_programs(tvm_mxplan.load(sys.argv[1]).module)
print(json.dumps([[step.implementation for step in library.describe(program).steps] for program in programs]))
"""


@networks("densenet121", "bvlc_alexnet", "resnet18", "shufflenet")
def test_the_implementations_are_those_planned_in_a_fresh_process(network: Network, tmp_path: Path) -> None:
    """A library runs as planned in a process that did not compile it.

    oneDNN keeps the primitives a process has asked for and answers like questions with them, so only a
    process that loads a library shows which implementations it gets there.
    """
    path = tmp_path / "model.so"
    network.executable.export(path)
    answer = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True
    ).stdout
    (program,) = decoded_programs(network.executable.module)
    (loaded,) = json.loads(answer)
    assert len(loaded) == len(program.steps) > 8
    assert loaded == [step.implementation for step in program.steps]


BATCHED = sorted({*zoo.LIGHT, "mobilenet_v2", "resnet18"})


@pytest.mark.parametrize("name", _with_marks(BATCHED, {*BATCHED} - {*SMALL}))
def test_numbers_and_coverage_of_a_batch(name: str) -> None:
    """Kernels are verified where one image is; here the numbers are held to another engine's alone."""
    model = zoo.load(name, batch=2)
    assert_numbers_and_coverage(model, tvm_mxplan.compile(model, options={"verify": "off"}))


@pytest.mark.parametrize("layouts", [policy for policy in POLICIES if policy != "cost"])
def test_every_layout_policy_gives_the_same_numbers(layouts: str) -> None:
    model = zoo.load("squeezenet")
    executable = tvm_mxplan.compile(model, options={"layouts": layouts})
    assert len(executable.report.regions) == 1
    inputs = zoo.random_inputs(model)
    actual = [tensor.numpy() for tensor in executable(**inputs)]
    assert worst_relative_l2(actual, onnxruntime_outputs(model, inputs)) <= TOLERANCE


@pytest.mark.slow
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
"""Shapes that the second stage's first block of ResNet-50 reads, and its 3x3 convolution reads and writes."""


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Plans for two threads of the library, however many the machine or the environment gives it."""
    with with_threads(2):
        yield


@pytest.mark.slow
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


@pytest.mark.slow
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
