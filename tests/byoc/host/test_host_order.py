"""Places of extreme elements and first elements in order: kernels, regions, models beside onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
import pytest
from host_steps import SPECIAL, ran
from onnx import TensorProto, helper

import tvm_mxplan
from tvm_mxplan.byoc import registry
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.opcheck.references.operands import Operands
from tvm_mxplan.opcheck.references.order import extreme_index, ranking
from tvm_mxplan.report.inspection import decoded_programs

RNG = np.random.default_rng(11)
TYPES = ("float32", "float64", "int8", "uint8", "int32", "int64", "bool")
SHAPES = [
    ((1,), 0),
    ((7,), 0),
    ((100003,), 0),
    ((3, 17), 1),
    ((3, 17), 0),
    ((513, 70), 1),
    ((2, 5, 301), 1),
    ((2, 133, 3), 1),
    ((300, 1), 1),
    ((0, 5), 1),
    ((3, 0, 4), 0),
]


def few(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers of which many are equal, and the farthest ones of the type."""
    numbers = RNG.integers(0 if dtype in ("uint8", "bool") else -9, 9, shape)
    if dtype == "bool":
        return numbers > 4
    array = numbers.astype(dtype)
    if array.size > 20 and array.dtype.kind in "iu":
        info = np.iinfo(dtype)
        array.flat[[3, 17]], array.flat[[5, 19]] = info.min, info.max
    return array


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_extreme_index(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x = few(shape, dtype)
    kept = tuple(1 if at == axis else extent for at, extent in enumerate(shape))
    for algorithm in ("max", "min"):
        for last in (False, True):
            attrs = ir.ExtremeIndex(algorithm, axis, last)
            for places in ("int32", "int64"):
                found = ran(attrs, [("src", x)], kept, places)
                assert np.array_equal(found, extreme_index(attrs, Operands({"src": [x]}, kept)).value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [3, 15, 16, 40, 131])
def test_extreme_index_of_what_is_no_number(count: int, dtype: str) -> None:
    """The first NaN, as numpy has it, in rows and in columns; zeros of both signs are equal."""
    x = np.round(RNG.standard_normal((60, count)) * 3).astype(dtype)
    x[:30].flat[RNG.integers(0, 30 * count, 40)] = np.resize(SPECIAL, 40)
    x[30:34], x[34:38] = np.nan, np.where(np.arange(count) % 3 == 1, -0.0, 0.0)
    x[38:42], x[42:46] = np.inf, -np.inf
    for find, algorithm in ((np.argmax, "max"), (np.argmin, "min")):
        for last in (False, True):
            expected = (count - 1 - find(x[:, ::-1], 1)) if last else find(x, 1)
            rows = ran(ir.ExtremeIndex(algorithm, 1, last), [("src", x)], (60, 1), "int64")
            assert np.array_equal(rows[:, 0], expected)
            across = np.ascontiguousarray(x.T)
            columns = ran(ir.ExtremeIndex(algorithm, 0, last), [("src", across)], (1, 60), "int64")
            assert np.array_equal(columns[0], expected)


@dataclass
class Ranked:
    """Results of a ranking, with values and bytes behind them that it must leave alone."""

    src: np.ndarray
    attrs: ir.Ranking
    shape: tuple[int, ...]
    places: str = "int64"
    results: list[np.ndarray] = field(default_factory=list)

    def run(self, threads: int) -> list[np.ndarray]:
        results = {"dst": str(self.src.dtype)} | ({"order": self.places} if self.places else {})
        values = [ir.Value("src", self.src.shape, str(self.src.dtype), "input", tag(self.src.ndim), 0)]
        operands = [ir.Operand("src", 0)]
        for at, (role, dtype) in enumerate(results.items()):
            values.append(ir.Value(role, self.shape, dtype, "output", tag(len(self.shape)), at))
            operands.append(ir.Operand(role, at + 1))
        program = ir.Program("p", tuple(values), (ir.Step("s", self.attrs, tuple(operands)),))
        backend = registry.planner("host")
        (step,) = backend.describe(program).steps
        assert step.implementation.startswith("host:"), step.error
        guarded = [np.ones(int(np.prod(self.shape)) + 64, dtype) for dtype in results.values()]
        outs = [one[32:-32].reshape(self.shape) for one in guarded]
        with with_threads(threads):
            backend.trial(program, [])(self.src, *outs)
        assert all((one[:32] == 1).all() and (one[-32:] == 1).all() for one in guarded)
        return [one.copy() for one in outs]


def tag(rank: int) -> str:
    return "abcdefghijkl"[:rank]


def check(src: np.ndarray, attrs: ir.Ranking, count: int, places: str = "int64") -> None:
    shape = tuple(count if at == attrs.axis else extent for at, extent in enumerate(src.shape))
    expected = ranking(attrs, Operands({"src": [src]}, shape))
    for threads in (1, 2):
        found = Ranked(src, attrs, shape, places).run(threads)
        assert np.array_equal(found[0], expected["dst"].value, equal_nan=src.dtype.kind == "f")
        assert not places or np.array_equal(found[1], expected["order"].value)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_ranking(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    """All of an axis, one element, and some: few enough to be chosen, and so many that all are sorted."""
    x = few(shape, dtype)
    for count in sorted({0, 1, 2, shape[axis] // 9, shape[axis] // 2, shape[axis]}):
        if count <= shape[axis]:
            for largest in (True, False):
                check(x, ir.Ranking(axis, largest), count)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal"])
def test_ranking_of_long_rows(order: str, dtype: str) -> None:
    """Rows in any order, in which many elements or few get past the limit."""
    x = (RNG.standard_normal((3, 6007)) * 1e4).astype(dtype)
    if order in ("rising", "falling"):
        x = np.sort(x, 1)[:, :: 1 if order == "rising" else -1].copy()
    if order == "equal":
        x[...] = 7
    for count in (1, 20, 600, 1200, 6007):
        for largest in (True, False):
            check(x, ir.Ranking(1, largest), count, "int32")


@pytest.mark.parametrize("count", [5, 300])
def test_ranking_of_what_is_no_number(count: int) -> None:
    """It is larger than infinity; zeros of both signs are equal, and bits are kept."""
    x = np.resize(SPECIAL, (4, 300)).astype("float32")
    RNG.shuffle(x, 1)
    for largest in (True, False):
        check(x, ir.Ranking(1, largest), count)
        shape = (4, count)
        values, order = Ranked(x, ir.Ranking(1, largest), shape).run(1)
        taken = np.take_along_axis(x, order, 1)
        assert np.array_equal(values.view("uint32"), taken.view("uint32"))


def test_ranking_without_places() -> None:
    check(few((3, 200), "int32"), ir.Ranking(1, False), 200, "")


# --- models ------------------------------------------------------------------------------------------------


def model(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str],
    results: dict[str, int],
    **constants: np.ndarray,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "order",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in results.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def kinds_of(ex: tvm_mxplan.Executable) -> list[type]:
    return [type(step.attrs) for program in decoded_programs(ex.module) for step in program.steps]


def agree(made: onnx.ModelProto, x: np.ndarray, kind: type) -> None:
    ex = tvm_mxplan.compile(made, "host, llvm", options={"cache": "disabled", "verify": "all"})
    assert kind in kinds_of(ex)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    arrays = [one.numpy() for one in ex(x)]
    for array, other in zip(arrays, session.run(None, {"x": x}), strict=True):
        assert array.dtype == other.dtype and np.array_equal(array, other, equal_nan=other.dtype.kind == "f")


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("flags", [{}, {"keepdims": 0}, {"select_last_index": 1}])
def test_models_with_places_of_extremes(operator: str, axis: int, flags: dict[str, int]) -> None:
    node = helper.make_node(operator, ["x"], ["y"], axis=axis, **flags)
    x = np.round(RNG.standard_normal((5, 67, 33)) * 2).astype("float32")
    agree(model([node], x.shape, {"y": TensorProto.INT64}), x, ir.ExtremeIndex)


@pytest.mark.parametrize("count", [1, 5, 66, 67])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("largest", [0, 1])
def test_models_with_first_elements(count: int, axis: int, largest: int) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)
    x = np.round(RNG.standard_normal((3, 67, 131)) * 20).astype("float32")
    x[0, 5, 7], x[1, 3, 9] = np.inf, -np.inf
    results = {"v": TensorProto.FLOAT, "i": TensorProto.INT64}
    agree(model([node], x.shape, results, k=np.array([count])), x, ir.Ranking)


def test_first_elements_between_products_are_one_region() -> None:
    w = RNG.standard_normal((35, 301)).astype("float32")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("TopK", ["h", "k"], ["v", "i"]),
        helper.make_node("Relu", ["v"], ["y"]),
        helper.make_node("ArgMax", ["h"], ["best"], axis=1),
    ]
    results = {"y": TensorProto.FLOAT, "i": TensorProto.INT64, "best": TensorProto.INT64}
    made = model(nodes, (64, 35), results, w=w, k=np.array([7]))
    ex = tvm_mxplan.compile(made, options={"cache": "disabled", "verify": "all"})
    assert len(decoded_programs(ex.module)) == 1 and {ir.Ranking, ir.ExtremeIndex} <= set(kinds_of(ex))
    x = RNG.integers(-3, 4, (64, 35)).astype("float32")
    values, places, best = (one.numpy() for one in ex(x))
    exact = x.astype("float64") @ w
    assert np.allclose(values, np.maximum(-np.sort(-exact, 1)[:, :7], 0), rtol=1e-5, atol=1e-4)
    assert np.array_equal(best, exact.argmax(1)[:, None]) and np.array_equal(places[:, :1], best)
