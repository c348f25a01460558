"""Functions of one tensor: every activation as an operator, and as exporters spell it out."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_node import LAYOUTS, Graph, check, computing, run, tolerance
from scipy import special
from tvm import relax

import tvm_mxplan
from tvm_mxplan.testing.reference import relative_l2

SHAPES = [(2, 17, 5, 7), (1, 67, 3), (3, 17), (5,), (1, 3, 3, 4, 5), (2, 1, 2, 3, 2, 2)]
ONE = {"eltwise": 1}
# kind, attributes, whether it needs positive numbers
FUNCTIONS = [
    ("Relu", {}, False),
    ("LeakyRelu", {"alpha": 0.3}, False),
    ("Elu", {"alpha": 0.7}, False),
    ("Gelu", {}, False),
    ("Gelu", {"approximate": "tanh"}, False),
    ("Tanh", {}, False),
    ("Sigmoid", {}, False),
    ("HardSwish", {}, False),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, False),
    ("Mish", {}, False),
    ("Softplus", {}, False),
    ("Abs", {}, False),
    ("Neg", {}, False),
    ("Sqrt", {}, True),
    ("Reciprocal", {}, True),
]


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_every_function(shape):
    g, outputs = Graph(opset=20), []
    for kind, attrs, positive in FUNCTIONS:
        x = g.positive(*shape) if positive else g.input(*shape)
        outputs.append(g.op(kind, x, **attrs))
    check(g, *outputs, steps={"eltwise": len(FUNCTIONS), "binary": 2})  # three for softplus


@pytest.mark.parametrize("kind, reference", [("Log", np.log), ("LogSoftmax", special.log_softmax)])
def test_logarithms_near_0_keep_their_digits(kind, reference):
    """By kernels of our own: oneDNN's are off by 1e-6 and more."""
    g = Graph()
    near_1 = 1 + np.logspace(-7, -1, 59_500).reshape(17, 3500)
    x = near_1 if kind == "Log" else np.stack([np.full(40, 16.0), np.linspace(-1, 4, 40)], 1)
    x = x.astype("float32")

    def right(given):
        return [reference(given) if kind == "Log" else reference(given, -1)]

    y = g.op(kind, g.input(data=x))
    ex, (found,), (wanted,) = run(g, y, reference=right, target="dnnl, host, llvm")
    assert not ex.report.fallbacks and len(ex.report.regions) == 1, str(ex.report)
    np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=0 if kind == "Log" else 1.5e-6)
    assert np.all(found <= 0) or kind == "Log"


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_other_ranks(layouts):
    g = Graph()
    outputs = [g.op(kind, g.input(*shape)) for shape in SHAPES[4:] for kind in ("Relu", "Sigmoid", "Neg")]
    check(g, *outputs, steps={"eltwise": len(outputs)}, layouts=layouts)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_what_makes_numbers_of_zeros_leaves_the_padding_alone(layouts):
    """17 channels in blocks of 16 end in zeros that the next convolution reads."""
    g, outputs = Graph(), []
    for kind in ("HardSigmoid", "Sigmoid", "Softplus"):
        x = g.op("MaxPool", g.conv(g.input(1, 3, 7, 7), 3, 17), kernel_shape=[2, 2])
        outputs.append(g.conv(g.op(kind, x), 17, 67))
    steps = {"convolution": 6, "pooling": 3, "eltwise": 1, "binary": 2}
    check(g, *outputs, steps=steps, reduction=17 * 9, layouts=layouts)


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_binary_steps_that_make_numbers_of_zeros_leave_the_padding_alone(layouts):
    g, outputs = Graph(), []
    for make in (
        lambda x: g.op("Exp", x),
        lambda x: g.op("Min", x, g.scalar(-0.7)),
        lambda x: g.op("Div", x, g.scalar(0.0)),
        lambda x: g.op("Pow", g.op("Abs", x), g.scalar(0.5)),
    ):
        x = g.op("MaxPool", g.conv(g.input(1, 3, 7, 7), 3, 17), kernel_shape=[2, 2])
        other = g.conv(x, 17, 17)  # so that x stands in memory
        y = make(x)
        y = g.op("Min", g.op("Max", y, g.scalar(-9.0)), g.scalar(9.0))
        outputs += [other, g.conv(y, 17, 67)]
    ex, actual, expected = run(g, *outputs, layouts=layouts)
    kinds = [step.kind for step in computing(ex.report)]
    assert kinds.count("binary") >= 4
    errors = [relative_l2(ours, theirs) for ours, theirs in zip(actual, expected, strict=True)]
    assert max(errors) <= tolerance(17 * 9), str(ex.report)


def test_clip():
    g, outputs = Graph(), []
    for bounds in ((0, 6), (None, 0.5), (-0.5, None), (-0.7, 0.3)):
        low, high = ("" if bound is None else g.scalar(bound) for bound in bounds)
        outputs.append(g.op("Clip", g.input(1, 17, 5, 5), low, high))
    check(g, *outputs, steps={"eltwise": 3, "binary": 1})  # a minimum alone is no clip


BOUNDS = [
    ("Clip", 0.7, -0.7), ("max first", 0.7, -0.7), ("min first", 0.7, -0.7), ("Clip", 0.5, 0.5),
    ("Clip", -np.inf, 0.3), ("Clip", -0.3, np.inf), ("min first", -0.3, 0.3), ("max first", 0, 6),
]  # fmt: skip


@pytest.mark.parametrize("behind_a_convolution", [False, True])
def test_bounds_in_any_order(behind_a_convolution):
    """Bounds that cross give the one that is applied last."""
    g, outputs = Graph(), []
    for order, low, high in BOUNDS:
        x = g.conv(g.input(2, 3, 5, 5), 3, 17) if behind_a_convolution else g.input(2, 3, 5, 5)
        lower, upper = g.scalar(low), g.scalar(high)
        if order == "Clip":
            y = g.op("Clip", x, lower, upper)
        elif order == "max first":
            y = g.op("Min", g.op("Max", x, lower), upper)
        else:
            y = g.op("Max", g.op("Min", x, upper), lower)
        outputs.append(y)
    ex, actual, expected = run(g, *outputs)
    assert not ex.report.fallbacks
    kinds = [step.kind for step in computing(ex.report)]
    assert len(kinds) == len(BOUNDS)
    assert set(kinds) == ({"convolution"} if behind_a_convolution else {"eltwise", "binary"})
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_crossed_bounds_of_relax_are_left_to_tvm():
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((3, 17), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            clipped = builder.emit(relax.op.clip(x, 0.5, -0.5))
            y = builder.emit_output(relax.op.tanh(clipped))
        builder.emit_func_output(y)
    ex = tvm_mxplan.compile(builder.get())
    assert [step.kind for step in computing(ex.report)] == ["eltwise"]
    assert "ascending" in ex.report.fallbacks[0].reason
    (y,) = ex(np.random.default_rng(0).standard_normal((3, 17)).astype("float32"))
    np.testing.assert_allclose(y.numpy(), np.full((3, 17), np.tanh(0.5)), rtol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int64", 0, 2**63 - 1), ("int64", -(2**63), 2**63 - 1), ("int64", -(2**53) - 1, 2**53 + 1),
     ("int32", -3, 2**24 + 1), ("int64", 7, -7)],
)  # fmt: skip
def test_integer_bounds_stay_integers(dtype, low, high):
    g = Graph()
    data = np.array([-7, -1, 0, 3, 2**30, 2**31 - 1, 2**62, -(2**62)]).astype(dtype)
    y = g.op("Clip", g.input(data=data), *(g.constant(data=np.array(n, dtype)) for n in (low, high)))
    ex, (actual,), (expected,) = run(g, y)
    assert not ex.report.regions
    assert np.array_equal(actual, expected)


def test_clip_without_bounds_is_nothing():
    g = Graph()
    check(g, g.op("Relu", g.op("Clip", g.input(1, 17, 5, 5))), steps=ONE)


def test_clip_of_opset_6():
    g = Graph(opset=6)
    check(g, g.op("Clip", g.input(1, 17, 5, 5), min=0.0, max=6.0), steps=ONE)


def test_power():
    g = Graph()
    outputs = [g.op("Pow", g.positive(1, 17, 5, 5), g.scalar(power)) for power in (2.0, 0.5, 3.0, -1.0)]
    check(g, *outputs, steps={"eltwise": 3, "binary": 1})  # a root is two steps, fused


def test_power_of_a_tensor_is_left_to_tvm():
    g = Graph()
    y = g.op("Pow", g.positive(2, 17), g.input(2, 17))
    check(g, y, steps={}, fallbacks={"power": "no constant number"})


def test_prelu():
    g, outputs = Graph(), []
    for shape, slope in (
        ((1, 17, 5, 5), (17, 1, 1)),
        ((3, 17), (17,)),
        ((2, 3, 5), (3, 1)),
        ((2, 17, 5, 5), (5,)),
        ((2, 17, 5, 5), (5, 1)),
    ):
        slopes = g.constant(data=g.random.uniform(0.1, 0.9, slope).astype("float32"))
        outputs.append(g.op("PRelu", g.input(*shape), slopes))
    check(g, *outputs, steps={"prelu": 5})


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_prelu_after_a_convolution(layouts):
    g = Graph()
    slopes = g.constant(data=g.random.uniform(0.1, 0.9, (67, 1, 1)).astype("float32"))
    y = g.op("PRelu", g.conv(g.input(2, 3, 5, 5), 3, 67), slopes)
    check(g, y, steps={"convolution": 1, "prelu": 1}, reduction=27, layouts=layouts)


def test_prelu_with_one_slope_is_leaky_relu():
    g = Graph()
    check(g, g.op("PRelu", g.input(1, 17, 5, 5), g.constant(data=np.array([0.3], "float32"))), steps=ONE)


def test_prelu_with_a_slope_for_each_pixel_is_left_to_tvm():
    g = Graph()
    y = g.op("PRelu", g.input(2, 17, 5, 5), g.vector(17 * 25))
    g.constants["c0"] = g.constants["c0"].reshape(17, 5, 5)
    check(g, y, steps={"binary": 1}, fallbacks={"less": "", "where": ""})


def test_extreme_numbers():
    """Infinities and large numbers go the way they go elsewhere."""
    data = np.array([[-np.inf, -1e30, -100.0, -1.5, 0.0, 1.5, 100.0, 1e30, np.inf]], "float32")
    for kind in ("Relu", "Sigmoid", "Tanh", "Abs", "HardSigmoid"):
        g = Graph()
        ex, outputs, expected = run(g, g.op(kind, g.input(data=data)))
        assert [step.kind for step in computing(ex.report)] == ["eltwise"]
        np.testing.assert_allclose(outputs[0], expected[0], rtol=1e-5, atol=1e-6, err_msg=kind)


# Infinities, NaN and what overflows, at a vector's every place: more of them than a register holds.
SPECIAL = np.array([0, 1, -1, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-3, 30, -30] * 4, "float32")


@pytest.mark.parametrize("behind_another", [False, True])
def test_exp_keeps_nan(behind_another):
    g = Graph()
    x = g.input(data=SPECIAL[None, :])
    ex, (actual,), (expected,) = run(g, g.op("Exp", g.op("Neg", x) if behind_another else x))
    kinds = [step.kind for step in computing(ex.report)]
    assert kinds == ["eltwise", "binary"][1 - behind_another :]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_functions_keep_nan_and_infinities():
    g = Graph(opset=18)
    kinds = ("LeakyRelu", "Elu", "Mish", "HardSwish", "Tanh", "Sigmoid", "Sqrt")
    outputs = [g.op(kind, g.input(data=SPECIAL[None, :])) for kind in kinds]
    _check_special(g, outputs)


@pytest.mark.parametrize("target", ["dnnl, host, llvm", "llvm"])
@pytest.mark.parametrize("behind_a_convolution", [False, True])
def test_softplus_of_numbers_far_below_zero_is_more_than_zero(target, behind_a_convolution):
    """oneDNN's alone gives 0 and numbers below, of which logarithms are no numbers."""
    numbers = np.r_[-80:-15:66j, -15:-8:71j, -8:8:160j, 20:90:71j].astype("float32")
    x = np.tile(numbers, 3).reshape(1, 3, -1, 1)
    if not behind_a_convolution:
        x = np.concatenate([x, np.broadcast_to(SPECIAL.reshape(1, 1, -1, 1), (1, 3, SPECIAL.size, 1))], 2)
    g = Graph()
    y = g.input(data=np.ascontiguousarray(x))
    if behind_a_convolution:
        y = g.op("Conv", y, g.constant(data=np.eye(3, dtype="float32").reshape(3, 3, 1, 1)))
    _, (actual,), _ = run(g, g.op("Softplus", y), target=target)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(0.0, x.astype("float64"))
    np.testing.assert_allclose(actual, expected, rtol=2e-6 if target == "llvm" else 1e-3, atol=1e-37)


@pytest.mark.parametrize("number", [1.0, -2.5, np.inf, -np.inf])
def test_a_bound_keeps_infinities_and_takes_nan_for_a_number(number):
    """As in TVM's own kernels; in onnxruntime's, NaN stays."""
    g = Graph()
    x = [g.input(data=SPECIAL[None, :]) for _ in range(4)]
    outputs = [g.op(kind, x[at], g.scalar(number)) for at, kind in enumerate(("Max", "Min"))]
    outputs += [g.op("Relu", x[2]), g.op("HardSigmoid", x[3])]
    ex, actual, expected = run(g, *outputs)
    assert len(computing(ex.report)) == 4
    nan = np.isnan(SPECIAL)[None, :]
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours[~nan], theirs[~nan], rtol=1e-6)
        assert set(ours[nan]) <= {0.0, 1.0, number}


def test_powers_of_special_numbers():
    g = Graph()
    powers = (0.5, 0.0, -1.0, 2.0, 3.0, -0.5, 1 / 3, np.inf)
    _check_special(g, [g.op("Pow", g.input(data=SPECIAL[None, :]), g.scalar(power)) for power in powers])


@pytest.mark.parametrize("swapped", [False, True])
def test_quotients_with_a_number(swapped):
    """Also those whose inverse float32 has not got."""
    g, outputs = Graph(), []
    for number in (0.0, -0.0, 1e-40, 2e38, -3.0, np.inf):
        operands = [g.input(data=SPECIAL[None, :]), g.scalar(number)]
        outputs.append(g.op("Div", *(operands[::-1] if swapped else operands)))
    _check_special(g, outputs)


def _check_special(g: Graph, outputs: list[str]) -> None:
    ex, actual, expected = run(g, *outputs)
    assert len(computing(ex.report)) == len(outputs)
    assert not ex.report.fallbacks
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["Add", "Mul", "Max", "Pow"])
def test_a_constant_that_is_no_number_is_left_to_tvm(kind):
    g = Graph()
    y = g.op("Tanh", g.op(kind, g.input(3, 17), g.scalar(np.nan)))
    ex, (actual,), _ = run(g, y)
    assert [step.kind for step in computing(ex.report)] == ["eltwise"]
    assert "NaN" in ex.report.fallbacks[0].reason
    if kind in ("Add", "Mul"):
        assert np.isnan(actual).all()
