"""Tiny ONNX graphs on random data: what was offloaded is asserted, then numbers are compared.

g = Graph()
y = g.op("Relu", g.op("Conv", g.input(1, 17, 9, 9), g.constant(67, 17, 3, 3)))
check(g, y, steps={"convolution": 1}, reduction=17 * 9)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import onnx
from onnx import helper, numpy_helper

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.execution.executable import Executable
from tvm_mxplan.report.report import Report, StepReport
from tvm_mxplan.testing.reference import onnxruntime_outputs, relative_l2

OPSET = 17
LAYOUTS = ("channels_last", "blocked", "plain")
TARGET = "dnnl, llvm"
"""Tests here ask what oneDNN takes and what it leaves; tests/byoc/host have the library behind it."""


class Graph:
    """Collects nodes, inputs with their data, and constants; all methods give names of tensors."""

    def __init__(self, seed: int = 0, opset: int = OPSET) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = opset
        self.inputs: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.nodes: list[onnx.NodeProto] = []

    def input(self, *shape: int, data: np.ndarray | None = None) -> str:
        """A graph input fed with ``data``, or with standard normal numbers of ``shape``."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self._normal(shape) if data is None else data
        return name

    def positive(self, *shape: int) -> str:
        """A graph input of numbers from 0.5 to 2."""
        return self.input(data=self.random.uniform(0.5, 2.0, shape).astype("float32"))

    def constant(self, *shape: int, data: object = None) -> str:
        """A parameter: ``data``, or normal numbers scaled so that a sum over all axes but the first is 1."""
        name = f"c{len(self.constants)}"
        if data is None:
            terms = max(1, int(np.prod(shape[1:])))
            data = self._normal(shape) / np.float32(np.sqrt(terms))
        self.constants[name] = np.asarray(data, getattr(data, "dtype", "float32"))
        return name

    def scalar(self, number: float) -> str:
        return self.constant(data=np.float32(number))

    def vector(self, size: int) -> str:
        """A parameter of numbers from 0.5 to 2: scales, variances, slopes."""
        return self.constant(data=self.random.uniform(0.5, 2.0, size).astype("float32"))

    def ints(self, *numbers: int) -> str:
        return self.constant(data=np.array(numbers, "int64"))

    def op(self, kind: str, *srcs: str, **attrs: object) -> str:
        """Append a node with one output."""
        return self.ops(kind, 1, *srcs, **attrs)[0]

    def ops(self, kind: str, outputs: int, *srcs: str, **attrs: object) -> list[str]:
        """Append a node with several outputs."""
        names = [f"y{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(srcs), names, **attrs))
        return names

    def conv(
        self, src: str, inputs: int, outputs: int, kernel: int = 3, groups: int = 1, **attrs: object
    ) -> str:
        """A two-dimensional convolution with bias that keeps the size."""
        weights = self.constant(outputs, inputs // groups, kernel, kernel)
        attrs.setdefault("pads", [kernel // 2] * 4)
        return self.op("Conv", src, weights, self.constant(outputs), group=groups, **attrs)

    def batch_norm(self, src: str, channels: int) -> str:
        mean, shift = self.constant(channels), self.constant(channels)
        scale, variance = self.vector(channels), self.vector(channels)
        return self.op("BatchNormalization", src, scale, shift, mean, variance)

    def model(self, *outputs: str) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [self._info(name, array) for name, array in self.inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        return onnx.shape_inference.infer_shapes(model)

    def _normal(self, shape: Sequence[int]) -> np.ndarray:
        return self.random.standard_normal(shape).astype("float32")

    @staticmethod
    def _info(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def tolerance(reduction: int) -> float:
    """Relative L2 error that float32 sums of ``reduction`` terms may have against any other order."""
    return min(1e-4, 2e-7 * (10 + reduction**0.5))


def check(
    graph: Graph,
    *outputs: str,
    steps: Mapping[str, int],
    fallbacks: Mapping[str, str] | None = None,
    reduction: int = 1,
    layouts: str = "channels_last",
    reference: Callable[..., Sequence[np.ndarray]] | None = None,
    slow_steps: Sequence[str] = (),
) -> Report:
    """Compile, assert what was offloaded, then compare numbers.

    Parameters
    ----------
    steps : primitives by kind, reorders left out; exactly these must be in the regions.
    fallbacks : operators that TVM keeps, each with a part of the reason; none if left out.
    reduction : terms in the longest sum, for the tolerance.
    reference : float64 results from the inputs by position, where onnxruntime has none.
    slow_steps : kinds of step for which oneDNN is known to have reference code only.
    """
    ex, actual, expected = run(graph, *outputs, layouts=layouts, reference=reference)
    assert_offloaded(ex.report, steps, fallbacks or {}, slow_steps)
    errors = [relative_l2(ours, theirs) for ours, theirs in zip(actual, expected, strict=True)]
    allowed = tolerance(reduction)
    wrong = [f"output {i} is off by {error:.1e}" for i, error in enumerate(errors) if error > allowed]
    assert not wrong, "\n".join([*wrong, str(ex.report)])
    return ex.report


def run(
    graph: Graph,
    *outputs: str,
    layouts: str = "channels_last",
    reference: Callable[..., Sequence[np.ndarray]] | None = None,
    target: str = TARGET,
) -> tuple[Executable, list[np.ndarray], Sequence[np.ndarray]]:
    """The compiled graph, its outputs, and what they should be."""
    model = graph.model(*outputs)
    ex = tvm_mxplan.compile(model, target, options={"layouts": layouts})
    if reference is None:
        # Unoptimised: onnxruntime 1.31 folds zeros padded before a MaxPool into its padding, which is wrong.
        expected = onnxruntime_outputs(model, graph.inputs, optimise=False)
    else:
        expected = reference(*[array.astype("float64") for array in graph.inputs.values()])
    return ex, [tensor.numpy() for tensor in ex(*graph.inputs.values())], expected


@contextmanager
def watched() -> Iterator[None]:
    """Regions that are called in here check their memory step by step, padded tails included."""
    library.set_debug(True)
    try:
        yield
    finally:
        library.set_debug(False)


def assert_offloaded(
    report: Report, steps: Mapping[str, int], fallbacks: Mapping[str, str], slow_steps: Sequence[str] = ()
) -> None:
    """The regions hold exactly ``steps``, TVM keeps exactly ``fallbacks``, and nothing else is slow."""
    assert Counter(step.kind for step in computing(report)) == Counter(steps), str(report)
    left = {fallback.operator.removeprefix("relax."): fallback.reason for fallback in report.fallbacks}
    assert left.keys() == (fallbacks or {}).keys(), str(report)
    for operator, reason in (fallbacks or {}).items():
        assert reason in left[operator], f"{operator}: {left[operator]}"
    slow = {step.kind for step in computing(report) if step.is_reference}
    assert slow <= set(slow_steps), str(report)


def computing(report: Report) -> list[StepReport]:
    """The report's steps without reorders."""
    return [step for region in report.regions for step in region.steps if step.kind != "reorder"]


def post_ops(report: Report, kind: str) -> list[tuple[str, ...]]:
    """Post-ops of every step of ``kind``."""
    return [step.post_ops for step in computing(report) if step.kind == kind]
