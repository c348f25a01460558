"""Several operators that spell one out become one step if they mean the same, and stay apart if not."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm
from scipy import special

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "passes"))

from dataflow_text import dataflow
from relax_programs import normal

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.families import lrn as lrn_family
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.references import evaluate
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.region import BuildPrograms, PartitionRegions
from tvm_mxplan.passes.region.attached import program_of, regions

SHAPE = (2, 6, 4, 5)
X = 'x: R.Tensor((2, 6, 4, 5), "float32")'


@pytest.fixture(autouse=True)
def code_for_every_lrn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns are the same on every processor; AVX2 has code for few channels' windows."""
    monkeypatch.setattr(lrn_family, "has_code", lambda *_: True)


def steps_of(lines: str, parameters: str = X) -> list[ir.Step]:
    """The steps of the one region that a dataflow block becomes, before layouts."""
    return steps_of_module(dataflow(lines, parameters))


def steps_of_module(mod: tvm.IRModule) -> list[ir.Step]:
    passes = [DispatchOperators(preference_of([OneDNN()])), PartitionRegions(), BuildPrograms(OneDNN())]
    found = list(regions(tvm.transform.Sequential(passes)(mod), "mxplan_onednn"))
    return [step for _, region in found for step in program_of(region).steps if step.kind != "reorder"]


def composites_of(lines: str) -> list[str]:
    """Names of the composites that a dataflow block becomes."""
    mod = DispatchOperators(preference_of([OneDNN()]))(dataflow(lines, X))
    attributes = [function.attrs for function in mod.functions.values() if function.attrs]
    return [str(attrs["Composite"]) for attrs in attributes if "Composite" in attrs]


def value_of(step: ir.Step, x: np.ndarray) -> np.ndarray:
    """The result of the one step for x, by the reference of its kind."""
    return evaluate(step, x.shape, {"src": [x.astype("float64")]}, [None] * len(step.post_ops))["dst"].value


def const(number: float) -> str:
    return f"R.const({number!r}, 'float32')"


def vector(*numbers: float) -> str:
    return f"R.const({np.array(numbers).reshape(-1, 1, 1).tolist()}, 'float32')"


GELU = "e = R.erf(R.{0}(x, {1}))\na = R.add(e, {2})\n"
Function = Callable[[np.ndarray], np.ndarray]


def sigmoid_line(low: float, high: float) -> Function:
    return lambda x: np.clip(0.25 * x + 0.4, low, high)


ONE: dict[str, tuple[str, Function]] = {
    "swish": ("s = R.sigmoid(x)\ny = R.multiply(x, s)", lambda x: x * special.expit(x)),
    "swish, the other way": ("s = R.sigmoid(x)\ny = R.multiply(s, x)", lambda x: x * special.expit(x)),
    "hardswish": (
        f"a = R.add(x, {const(3.0)})\nc = R.clip(a, 0, 6)\ng = R.divide(c, {const(6.0)})\n"
        "y = R.multiply(x, g)",
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
    ),
    "hardswish, product first": (
        f"a = R.add({const(3.0)}, x)\nc = R.clip(a, 0, 6)\ng = R.multiply(c, x)\n"
        f"y = R.multiply({const(1 / 6)}, g)",
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
    ),
    "hardsigmoid": (
        f"a = R.add(x, {const(3.0)})\nc = R.clip(a, 0, 6)\ny = R.divide(c, {const(6.0)})",
        lambda x: np.clip(x + 3, 0, 6) / 6,
    ),
    "a clipped line": (
        f"m = R.multiply({const(0.25)}, x)\na = R.add(m, {const(0.4)})\ny = R.clip(a, 0, 1)",
        sigmoid_line(0, 1),
    ),
    "x times a clipped line": (
        f"m = R.multiply(x, {const(0.25)})\na = R.add({const(0.4)}, m)\nc = R.clip(a, 0, 1)\n"
        "y = R.multiply(c, x)",
        lambda x: x * sigmoid_line(0, 1)(x),
    ),
    "mish": (
        f"e = R.exp(x)\na = R.add({const(1.0)}, e)\nl = R.log(a)\nt = R.tanh(l)\ny = R.multiply(x, t)",
        lambda x: x * np.tanh(np.log1p(np.exp(x))),
    ),
    "mish, short": ("y = R.multiply(x, R.tanh(R.nn.softplus(x)))", lambda x: x * np.tanh(np.logaddexp(0, x))),
    "softplus, stable": (
        f"p = R.nn.relu(x)\nn = R.exp(R.negative(R.abs(x)))\nl = R.log(R.add(n, {const(1.0)}))\n"
        "y = R.add(p, l)",
        lambda x: np.log1p(np.exp(x)),
    ),
    "softplus of a maximum": (
        f"p = R.maximum(x, {const(0.0)})\nn = R.exp(R.negative(R.abs(x)))\n"
        f"l = R.log(R.add({const(1.0)}, n))\ny = R.add(l, p)",
        lambda x: np.log1p(np.exp(x)),
    ),
    "elu as importers write it": (
        f"e = R.subtract({const(1.0)}, R.exp(x))\nn = R.nn.relu(e)\ns = R.multiply({const(-0.7)}, n)\n"
        "p = R.nn.relu(x)\ny = R.add(s, p)",
        lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)),
    ),
    "gelu": (
        GELU.format("divide", const(math.sqrt(2)), const(1.0))
        + f"m = R.multiply(x, a)\ny = R.multiply(m, {const(0.5)})",
        lambda x: x * special.ndtr(x),
    ),
    "gelu, halved first": (
        GELU.format("multiply", const(math.sqrt(0.5)), const(1.0))
        + f"h = R.divide(x, {const(2.0)})\ny = R.multiply(h, a)",
        lambda x: x * special.ndtr(x),
    ),
    "gelu by tanh": (
        f"c = R.power(x, {const(3.0)})\nd = R.multiply(c, {const(0.044715)})\nb = R.add(x, d)\n"
        f"s = R.multiply(b, {const(math.sqrt(2 / math.pi))})\na = R.add(R.tanh(s), {const(1.0)})\n"
        f"h = R.multiply(a, {const(0.5)})\ny = R.multiply(x, h)",
        lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
}


@pytest.mark.parametrize("case", ONE)
def test_one_step_that_means_the_same(case):
    lines, function = ONE[case]
    assert len(composites_of(lines)) == 1
    if "softplus" not in case:  # which is several steps, whose numbers test_eltwise.py has
        (step,) = steps_of(lines)
        x = np.linspace(-5, 5, int(np.prod(SHAPE)), dtype="float32").reshape(SHAPE)
        np.testing.assert_allclose(value_of(step, x), function(x.astype("float64")), rtol=1e-4, atol=1e-5)


LIKE: dict[str, str] = {
    "hardswish with another offset": ONE["hardswish"][0].replace("3.0", "2.5"),
    "hardswish with another limit": ONE["hardswish"][0].replace("0, 6", "0, 5"),
    "hardswish from another limit": ONE["hardswish"][0].replace("0, 6", "1, 6"),
    "hardswish with another divisor": ONE["hardswish"][0].replace("6.0", "5.0"),
    "hardswish of two tensors": ONE["hardswish"][0].replace("R.multiply(x, g)", "R.multiply(R.abs(x), g)"),
    "hardswish, another factor": ONE["hardswish, product first"][0].replace(repr(1 / 6), "0.2"),
    "hardsigmoid with another divisor": ONE["hardsigmoid"][0].replace("6.0", "7.0"),
    "a line clipped elsewhere": ONE["a clipped line"][0].replace("0, 1", "0, 2"),
    "a line clipped from elsewhere": ONE["a clipped line"][0].replace("0, 1", "-1, 1"),
    "a line with a slope for each channel": ONE["a clipped line"][0].replace(
        const(0.25), vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    ),
    "a line with an offset for each channel": ONE["a clipped line"][0].replace(
        const(0.4), vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    ),
    "mish with another number": ONE["mish"][0].replace("1.0", "2.0"),
    "softplus with another number": ONE["softplus, stable"][0].replace("1.0", "2.0"),
    "softplus of another maximum": ONE["softplus of a maximum"][0].replace("0.0", "0.5"),
    "elu with another number": ONE["elu as importers write it"][0].replace("1.0", "2.0"),
    "elu with a factor for each channel": ONE["elu as importers write it"][0].replace(
        const(-0.7), vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    ),
    "gelu of another root": ONE["gelu"][0].replace(repr(math.sqrt(2)), "1.5"),
    "gelu, not halved": ONE["gelu"][0].replace("0.5", "0.6"),
    "gelu, divided by three": ONE["gelu, halved first"][0].replace("2.0", "3.0"),
    "gelu with another sum": ONE["gelu"][0].replace("1.0", "1.5"),
    "gelu by tanh of a square": ONE["gelu by tanh"][0].replace("3.0", "2.0"),
    "gelu by tanh, another bend": ONE["gelu by tanh"][0].replace("0.044715", "0.05"),
    "gelu by tanh, another slope": ONE["gelu by tanh"][0].replace(repr(math.sqrt(2 / math.pi)), "0.8"),
}


@pytest.mark.parametrize("case", LIKE)
def test_what_only_looks_like_one_stays_apart(case):
    assert LIKE[case] not in {lines for lines, _ in ONE.values()}
    composites = composites_of(LIKE[case])
    assert len(composites) > 1
    whole = {"gelu_erf", "gelu_tanh", "mish", "elu", "softplus_stable"}
    whole |= {"hardswish", "hardswish_line", "hardsigmoid", "hardsigmoid_sixth"}
    found = whole & {name.rpartition(".")[2] for name in composites}
    assert found == ({"hardsigmoid_sixth"} if case == "hardswish of two tensors" else set())


# --- what importers spread over several operators --------------------------------------------------------


def lrn(
    size: int = 5,
    padding: str = "2, 0, 0, 2, 0, 0",
    beta: float = 0.75,
    alpha: str = "R.const(0.02, 'float32')",
):
    return f"""
    q = R.multiply(x, x)
    e = R.expand_dims(q, axis=[1])
    p = R.nn.avg_pool3d(e, pool_size=[{size}, 1, 1], padding=[{padding}], count_include_pad=True)
    s = R.squeeze(p, axis=[1])
    m = R.multiply(s, {alpha})
    b = R.add(m, R.const(1.5, 'float32'))
    w = R.power(b, R.const({beta}, 'float32'))
    y = R.divide(x, w)
    """


def norm(axes: str, square: str = "R.multiply(c, c)", keepdims: bool = True) -> str:
    return f"""
    m = R.mean(x, axis={axes}, keepdims=True)
    c = R.subtract(x, m)
    v = R.mean({square}, axis={axes}, keepdims={keepdims})
    r = R.sqrt(R.add(v, R.const(0.01, 'float32')))
    y = R.divide(c, r)
    """


INSTANCE = """
    m = R.mean(x, axis={0}, keepdims=True)
    c = R.subtract(x, m)
    v = R.variance(x, axis={1}, keepdims=True)
    r = R.sqrt(R.add(v, R.const(0.01, 'float32')))
    y = R.divide(c, r)
"""
SHUFFLE = "a = R.reshape(x, ({0}))\nb = R.permute_dims(a, axes=[{1}])\ny = R.reshape(b, (2, 6, 4, 5))"


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        (lrn(), ["lrn"]),
        (lrn(3, "1, 0, 0, 1, 0, 0"), ["lrn"]),
        (norm("[-1]"), ["layer_normalization"]),
        (norm("[2, 3]"), ["layer_normalization"]),
        (norm("[3, 2]"), ["layer_normalization"]),
        (norm("[-1]", "R.square(c)"), ["layer_normalization"]),
        (norm("[0, 1, 2, 3]"), ["layer_normalization"]),
        (lrn(1, "0, 0, 0, 0, 0, 0"), ["lrn"]),
        (norm("[-1]", "R.power(c, R.const(2.0, 'float32'))"), ["layer_normalization"]),
        (INSTANCE.format("[2, 3]", "[2, 3]"), ["layer_normalization"]),
        (SHUFFLE.format("2, 3, 2, 4, 5", "0, 2, 1, 3, 4"), ["shuffle"]),
    ],
)
def test_what_importers_spread_is_one_step(lines, kinds):
    assert [step.kind for step in steps_of(lines)] == kinds


def test_an_lrn_without_code_for_it_stays_in_pieces(monkeypatch):
    asked = []
    monkeypatch.setattr(lrn_family, "has_code", lambda *about: asked.append(about))
    assert [step.kind for step in steps_of(lrn())] == ["binary", "pooling", "binary", "binary"]
    ((attrs, shape),) = set(asked)
    assert isinstance(attrs, ir.LRN) and shape == SHAPE


@pytest.mark.parametrize(
    ("axes", "shape"), [("[-1]", (2, 6, 4, 5)), ("[2, 3]", (2, 6, 20)), ("[0, 1, 2, 3]", (1, 240))]
)
def test_a_layer_norm_works_on_rows(axes, shape):
    """Of the axes that are normalized together; of all of them there is one row."""
    mod = dataflow(norm(axes), X)
    passes = [DispatchOperators(preference_of([OneDNN()])), PartitionRegions(), BuildPrograms(OneDNN())]
    ((_, region),) = regions(tvm.transform.Sequential(passes)(mod), "mxplan_onednn")
    program = program_of(region)
    (step,) = [step for step in program.steps if step.kind == "layer_normalization"]
    assert program.values[step.dst].shape == program.values[step.operand("src")].shape == shape
    assert step.attrs == ir.LayerNormalization(float(np.float32(0.01)))


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (lrn(beta=0.5), "lrn"),
        (lrn(5, "4, 0, 0, 0, 0, 0"), "lrn"),
        (lrn(alpha=vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)), "lrn"),
        (norm("[-1]", "R.power(c, R.const(3.0, 'float32'))"), "layer_normalization"),
        (norm("[2]"), "layer_normalization"),
        (lrn(4, "2, 0, 0, 1, 0, 0"), "lrn"),
        (lrn().replace("count_include_pad=True", "count_include_pad=False"), "lrn"),
        (INSTANCE.format("[2, 3]", "[3]"), "layer_normalization"),
        (INSTANCE.format("[3]", "[2, 3]"), "layer_normalization"),
        (INSTANCE.format("[1, 2, 3]", "[1, 2, 3]"), "layer_normalization"),
        (SHUFFLE.format("2, 3, 2, 4, 5", "0, 1, 2, 4, 3"), "shuffle"),
        (SHUFFLE.format("2, 6, 2, 2, 5", "0, 2, 1, 3, 4"), "shuffle"),
        (SHUFFLE.format("2, 3, 2, 5, 4", "0, 2, 1, 3, 4"), "shuffle"),
    ],
)
def test_what_only_looks_like_it_is_something_else(lines, kind):
    assert kind not in [step.kind for step in steps_of(lines)]


def test_one_of_the_parts_that_is_used_elsewhere_keeps_them_apart():
    lines = "s = R.sigmoid(x)\nm = R.multiply(x, s)\ny = R.concat((s, m), axis=1)"
    assert [step.kind for step in steps_of(lines)] == ["eltwise", "binary", "concat"]


def test_weights_are_read_transposed_where_they_are_a_matrix():
    parameters = (
        'x: R.Tensor((3, 4, 5), "float32"), w: R.Tensor((7, 5), "float32"), v: R.Tensor((3, 7, 5), "float32")'
    )
    for name, axes in (("w", "[1, 0]"), ("v", "[0, 2, 1]")):
        lines = f"t = R.permute_dims({name}, axes={axes})\ny = R.matmul(x, t)"
        assert [step.kind for step in steps_of(lines, parameters)] == ["matmul"]


# --- single operators ------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Function] = {
    "R.nn.relu(x)": lambda x: np.maximum(x, 0),
    "R.nn.leakyrelu(x, 0.3)": lambda x: np.where(x > 0, x, 0.3 * x),
    "R.nn.gelu(x)": lambda x: x * special.ndtr(x),
    "R.nn.silu(x)": lambda x: x * special.expit(x),
    "R.tanh(x)": np.tanh,
    "R.sigmoid(x)": special.expit,
    "R.exp(x)": np.exp,
    "R.abs(x)": np.abs,
    "R.square(x)": np.square,
    "R.negative(x)": np.negative,
    "R.clip(x, -0.5, 2.5)": lambda x: np.clip(x, -0.5, 2.5),
    "R.power(x, R.const(2.0, 'float32'))": np.square,
    "R.add(x, R.const(0.7, 'float32'))": lambda x: x + 0.7,
    "R.add(R.const(0.7, 'float32'), x)": lambda x: x + 0.7,
    "R.subtract(x, R.const(0.7, 'float32'))": lambda x: x - 0.7,
    "R.subtract(R.const(0.7, 'float32'), x)": lambda x: 0.7 - x,
    "R.multiply(x, R.const(0.7, 'float32'))": lambda x: 0.7 * x,
    "R.divide(x, R.const(0.7, 'float32'))": lambda x: x / 0.7,
    "R.divide(R.const(0.7, 'float32'), x)": lambda x: 0.7 / x,
    "R.maximum(x, R.const(0.0, 'float32'))": lambda x: np.maximum(x, 0),
    "R.maximum(x, R.const(0.7, 'float32'))": lambda x: np.maximum(x, 0.7),
    "R.minimum(x, R.const(0.7, 'float32'))": lambda x: np.minimum(x, 0.7),
}


OF_POSITIVE: dict[str, Function] = {
    "R.sqrt(x)": np.sqrt,
    "R.nn.gelu_tanh(x)": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "R.power(x, R.const(-1.5, 'float32'))": lambda x: x**-1.5,
}


@pytest.mark.parametrize("expression", OF_POSITIVE)
def test_functions_of_positive_numbers(expression):
    (step,) = steps_of(f"y = {expression}")
    x = np.abs(normal(0, *SHAPE)) + np.float32(0.1)
    right = OF_POSITIVE[expression](x.astype("float64"))
    np.testing.assert_allclose(value_of(step, x), right, rtol=1e-5, atol=1e-6)


OF_TWO = {"R.exp(x)", "R.minimum(x, R.const(0.7, 'float32'))"}
"""Functions that oneDNN's elementwise kernels take NaN or infinities from: a binary step keeps them."""


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_functions_of_one_tensor(expression):
    (step,) = steps_of(f"y = {expression}")
    assert step.kind == ("binary" if expression in OF_TWO else "eltwise")
    if expression in OF_TWO:
        return  # tests/operators/elementwise/test_eltwise.py has their numbers
    x = 3 * normal(0, *SHAPE)
    right = FUNCTIONS[expression](x.astype("float64"))
    np.testing.assert_allclose(value_of(step, x), right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("sum", "pooling"),
        ("mean", "pooling"),
        ("max", "pooling"),
        ("min", "reduction"),
        ("prod", "reduction"),
    ],
)
def test_reductions_of_images_are_pooling_where_there_is_one(operator, expected):
    for shape, axes in (((2, 6, 4, 5), [2, 3]), ((1, 2, 3, 4, 5), [2, 3, 4])):
        (step,) = steps_of(f"y = R.{operator}(x, axis={axes})", f'x: R.Tensor({shape}, "float32")')
        assert step.kind == expected, shape
        counted = [one.alpha for one in step.post_ops if isinstance(one, ir.EltwisePostOp)]
        assert counted == ([math.prod(shape[2:])] if operator == "sum" else []), shape
    for shape, axes in (
        ((2, 6, 5), [2]),
        ((2, 6, 4, 5), [3]),
        ((2, 6), [1]),
        ((2, 6, 5), [2]),  # rows that no window made
        ((2, 3, 4, 5, 6, 7), [2, 3, 4, 5]),
        ((3, 4, 5), [1, 2]),
    ):
        (step,) = steps_of(f"y = R.{operator}(x, axis={axes})", f'x: R.Tensor({shape}, "float32")')
        assert step.kind == "reduction", shape
