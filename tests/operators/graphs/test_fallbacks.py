"""Operators left to TVM work around and between regions; inputs and outputs in every unusual role."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check, computing, run, tolerance

from tvm_mxplan.targets import DEFAULT
from tvm_mxplan.testing.reference import relative_l2


def check_between_regions(g: Graph, *outputs: str, layouts: str = "channels_last"):
    """Right numbers, and both some region and some fallback; by the default target no more regions."""
    ex, actual, expected = run(g, *outputs, layouts=layouts)
    assert computing(ex.report) and ex.report.fallbacks, str(ex.report)
    by_default, found, _ = run(g, *outputs, layouts=layouts, target=DEFAULT)
    assert len(by_default.report.regions) <= len(ex.report.regions), str(by_default.report)
    for ours, other, theirs in zip(actual, found, expected, strict=True):
        assert ours.dtype == other.dtype == theirs.dtype
        assert relative_l2(ours, theirs) <= tolerance(200), str(ex.report)
        assert relative_l2(other, theirs) <= tolerance(200), str(by_default.report)
    return ex.report


def test_gather_between_regions():
    g = Graph()
    x = g.op("Gather", g.op("Relu", g.input(5, 17)), g.ints(0, 3, 3, 1, 4, 2), axis=0)
    check_between_regions(g, g.op("Tanh", x))


def test_embedding_in_front_of_a_region():
    g = Graph()
    rows = g.op("Gather", g.constant(20, 17), g.input(data=np.array([[3, 1, 19], [0, 7, 7]], "int64")))
    y = g.op("Relu", g.op("MatMul", rows, g.constant(17, 67)))
    check_between_regions(g, y)


def test_cast_to_integers_and_back():
    g = Graph()
    x = g.op("Cast", g.op("Mul", g.op("Tanh", g.input(3, 17)), g.scalar(10.0)), to=7)
    y = g.op("Relu", g.op("Cast", g.op("Add", x, g.ints(3)), to=1))
    report = check_between_regions(g, y)
    assert any("int64" in fallback.reason for fallback in report.fallbacks)


def test_integer_operators_stay_with_tvm():
    g = Graph()
    x = g.input(data=np.arange(-6, 6, dtype="int32").reshape(3, 4))
    y = g.op("Mul", g.op("Add", x, g.constant(data=np.int32(5))), x)
    report = check(g, y, steps={}, fallbacks={"add": "element type int32", "multiply": "element type int32"})
    assert not report.regions


def test_double_precision_stays_with_tvm():
    g = Graph()
    y = g.op("Relu", g.input(data=np.random.default_rng(0).standard_normal((3, 17))))
    check(g, y, steps={}, fallbacks={"nn.relu": "element type float64"})


def test_where_between_regions():
    g = Graph()
    x = g.op("Tanh", g.input(2, 17, 5, 5))
    y = g.op("Where", g.op("Greater", x, g.scalar(0.1)), x, g.scalar(-1.0))
    check_between_regions(g, g.conv(y, 17, 3))


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_strided_slice_between_regions(layouts):
    g = Graph()
    x = g.conv(g.input(1, 3, 6, 6), 3, 17)
    x = g.op("Slice", x, g.ints(1, 1), g.ints(9, 6), g.ints(1, 2), g.ints(1, 2))
    check_between_regions(g, g.conv(x, 8, 3), layouts=layouts)


@pytest.mark.parametrize("kind", ["Erf", "Floor", "Sign", "Round"])
def test_functions_that_onednn_lacks(kind):
    g = Graph()
    y = g.op("Relu", g.op(kind, g.op("LeakyRelu", g.input(2, 17), alpha=3.0)))
    report = check_between_regions(g, y)
    assert {fallback.operator for fallback in report.fallbacks} == {f"relax.{kind.lower()}"}


@pytest.mark.parametrize("kind", ["Mean", "Max", "Min", "Prod", "L2", "SumSquare"])
def test_reductions_over_the_last_axes(kind):
    g, outputs = Graph(opset=13), []
    for axes in ([-1], [2, 3], [1, 2, 3]):
        for keepdims in (0, 1):
            x = g.positive(2, 17, 5, 3)
            outputs.append(g.op(f"Reduce{kind}", g.op("Sqrt", x), axes=axes, keepdims=keepdims))
    ex, actual, expected = run(g, *outputs)
    kinds = Counter(step.kind for step in computing(ex.report))
    assert kinds["reduction"] + kinds["pooling"] == 6, str(ex.report)
    assert not ex.report.fallbacks
    assert max(relative_l2(a, e) for a, e in zip(actual, expected, strict=True)) <= tolerance(255)


@pytest.mark.parametrize("kind", ["Mean", "Sum", "Max", "L2"])
def test_reductions_over_axes_in_the_middle_are_pools(kind):
    g, outputs = Graph(opset=11), []
    for axes in ([0], [1], [0, 1], [1, 2]):
        for keepdims in (0, 1):
            x = g.op("Sqrt", g.positive(3, 7, 5, 17))
            outputs.append(g.op(f"Reduce{kind}", x, axes=axes, keepdims=keepdims))
    ex, actual, expected = run(g, *outputs)
    kinds = Counter(step.kind for step in computing(ex.report))
    assert kinds["pooling"] == 8 and not ex.report.fallbacks, str(ex.report)
    assert max(relative_l2(a, e) for a, e in zip(actual, expected, strict=True)) <= tolerance(35)


@pytest.mark.parametrize("kind", ["Mean", "Sum", "Max", "L2"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((2, 17, 1, 1), [1]), ((1, 5, 1, 7), [1, 3]), ((6, 1, 1, 1), [0])]
)
def test_axes_are_the_last_ones_with_extents_of_1_behind_them(kind, shape, axes):
    g, outputs = Graph(opset=11), []
    for keepdims in (0, 1):
        x = g.op("Sqrt", g.positive(*shape))
        outputs.append(g.op(f"Reduce{kind}", x, axes=axes, keepdims=keepdims))
    ex, actual, expected = run(g, *outputs)
    kinds = Counter(step.kind for step in computing(ex.report))
    assert kinds["reduction"] == 2 and not ex.report.fallbacks, str(ex.report)
    assert [one.shape for one in actual] == [one.shape for one in expected]
    assert max(relative_l2(a, e) for a, e in zip(actual, expected, strict=True)) <= tolerance(35)


@pytest.mark.parametrize("axes", [[2], [0, 2, 3], [1, 3]])
def test_other_reductions_are_left_to_tvm(axes):
    g = Graph(opset=13)
    y = g.op("ReduceMean", g.op("Abs", g.input(2, 17, 5, 3)), axes=axes)
    check(g, y, steps={"eltwise": 1}, fallbacks={"mean": "not the last ones"}, reduction=30)


def test_scalar_results_are_left_to_tvm():
    g = Graph(opset=13)
    y = g.op("ReduceMean", g.op("Abs", g.input(2, 17)), axes=[0, 1], keepdims=0)
    check(g, y, steps={"eltwise": 1}, fallbacks={"mean": "rank 0"}, reduction=34)


# --- unusual inputs and outputs --------------------------------------------------------------------------


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_output_that_is_read_inside(layouts):
    g = Graph()
    x = g.conv(g.input(1, 3, 7, 7), 3, 17)
    check(g, x, g.op("Relu", x), steps={"convolution": 1, "eltwise": 1}, reduction=27, layouts=layouts)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_one_tensor_as_two_outputs(layouts):
    g = Graph()
    x = g.conv(g.input(1, 3, 7, 7), 3, 17)
    y, z = g.op("Identity", x), g.op("Identity", x)
    check(g, y, z, steps={"convolution": 1}, reduction=27, layouts=layouts)


def test_input_as_output():
    g = Graph()
    x = g.input(1, 3, 7, 7)
    check(g, x, g.op("Relu", x), steps={"eltwise": 1})


def test_input_as_only_output():
    g = Graph()
    check(g, g.op("Identity", g.input(2, 17)), steps={})


def test_view_of_an_input_as_output():
    g = Graph()
    x = g.input(1, 3, 7, 7)
    ex, actual, expected = run(g, g.op("Reshape", x, g.ints(3, 49)), g.op("Relu", x))
    assert [step.kind for step in computing(ex.report)] == ["eltwise"]
    assert all(np.array_equal(a, e) for a, e in zip(actual, expected, strict=True))


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_result_and_its_views_as_outputs(layouts):
    g = Graph()
    x = g.conv(g.input(2, 3, 5, 5), 3, 17)
    flat = g.op("Flatten", x)
    turned = g.op("Transpose", x, perm=[0, 2, 3, 1])
    steps = {"convolution": 1, "eltwise": 1}
    check(g, x, flat, turned, g.op("Relu", flat), steps=steps, reduction=27, layouts=layouts)


def test_constant_as_output():
    g = Graph()
    check(g, g.op("Identity", g.constant(2, 3)), g.op("Relu", g.input(2, 3)), steps={"eltwise": 1})


def test_results_do_not_share_memory_between_calls():
    import tvm_mxplan

    g = Graph()
    x = g.conv(g.input(1, 3, 7, 7), 3, 17)
    model = g.model(x, g.op("Relu", x))
    ex = tvm_mxplan.compile(model)
    kept = ex(*g.inputs.values())
    first = [tensor.numpy().copy() for tensor in kept]
    ex(*[-array for array in g.inputs.values()])
    assert all(np.array_equal(tensor.numpy(), before) for tensor, before in zip(kept, first, strict=True))


def test_inputs_are_left_as_they_were():
    import tvm_mxplan

    g = Graph()
    x = g.input(1, 17, 7, 7)
    y = g.op("Relu", g.op("Add", g.conv(g.op("Neg", x), 17, 17), x))
    ex = tvm_mxplan.compile(g.model(y))
    assert computing(ex.report)
    before = g.inputs["x0"].copy()
    ex(g.inputs["x0"])
    assert np.array_equal(g.inputs["x0"], before)


def test_empty_batch():
    """There is nothing to do for a library; TVM's code runs."""
    g = Graph()
    ex, actual, expected = run(g, g.op("Relu", g.input(0, 17)))
    assert computing(ex.report) == []
    assert actual[0].shape == expected[0].shape == (0, 17)
