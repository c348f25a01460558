"""Moves that keep a shape: functions of one number, of two, norms, choices."""

from __future__ import annotations

import numpy as np

from . import forms
from .graph import Graph, Tensor

_PLAIN = (
    "Relu", "Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Softsign", "Abs", "Neg", "Erf", "Identity",
    "Sin", "Cos",
)  # fmt: skip
_WITH_NUMBERS: dict[str, dict[str, tuple[float, float]]] = {
    "LeakyRelu": {"alpha": (0.01, 0.4)},
    "Elu": {"alpha": (0.5, 1.5)},
    "Selu": {"alpha": (1.0, 2.0), "gamma": (0.5, 1.5)},
    "Celu": {"alpha": (0.5, 1.5)},
    "HardSigmoid": {"alpha": (0.1, 0.3), "beta": (0.3, 0.7)},
    "ThresholdedRelu": {"alpha": (0.2, 1.0)},
}


def function(g: Graph, x: Tensor) -> Tensor:
    """An elementwise function, with its numbers if it has any."""
    if g.chance(0.5):
        plain = str(g.pick(_PLAIN))
        return g.unary("Softplus" if plain == "HardSwish" and g.opset < 14 else plain, x)
    operator = str(g.pick([*_WITH_NUMBERS, "Gelu", "Clip", "PRelu", "Swish", "Round", "Exp", "Log", "Sqrt"]))
    if operator == "Swish" and g.opset >= 18 and g.chance(0.3):
        return g.unary("Mish", x)
    if operator in _WITH_NUMBERS:
        operator = "Elu" if operator == "Celu" and g.opset < 12 else operator
        numbers = {name: float(g.random.uniform(*ends)) for name, ends in _WITH_NUMBERS[operator].items()}
        return g.unary(operator, x, **numbers)
    return _SPECIAL[operator](g, x)


def _gelu(g: Graph, x: Tensor) -> Tensor:
    if g.opset >= 20 and g.chance(0.6):
        return g.unary("Gelu", x, approximate=g.pick(["none", "tanh"]))
    half = g.unary("Erf", g.node("Div", [x, g.constant(np.float32(2**0.5))], x.shape))
    whole = g.node("Add", [half, g.constant(np.float32(1))], x.shape)
    product = g.node("Mul", [x, whole], x.shape)
    return g.node("Mul", [product, g.constant(np.float32(0.5))], x.shape)


def _clip(g: Graph, x: Tensor) -> Tensor:
    bounds = [g.constant(np.float32(g.random.uniform(*ends))) for ends in ((-1.5, 0), (0.2, 2))]
    return g.node("Clip", [x, *[bound if g.chance(0.8) else "" for bound in bounds]], x.shape)


def _prelu(g: Graph, x: Tensor) -> Tensor:
    slopes = (x.shape[1], *(1,) * (x.rank - 2)) if x.rank > 1 and g.chance(0.7) else (1,)
    return g.node("PRelu", [x, g.numbers(slopes, 0.3)], x.shape)


def _swish(g: Graph, x: Tensor) -> Tensor:
    gate = g.unary("Sigmoid", x)
    return g.node("Mul", [x, gate] if g.chance(0.5) else [gate, x], x.shape)


def _round(g: Graph, x: Tensor) -> Tensor:
    return g.unary(str(g.pick(["Round", "Floor", "Ceil", "Sign"])), x)


def _exp(g: Graph, x: Tensor) -> Tensor:
    return g.unary("Exp", g.unary("Tanh", x))


def _above_zero(g: Graph, x: Tensor) -> Tensor:
    least = g.constant(np.float32(g.random.uniform(0.3, 1.0)))
    return g.node("Add", [g.unary("Abs", x), least], x.shape)


def _log(g: Graph, x: Tensor) -> Tensor:
    return g.unary("Log", _above_zero(g, x))


def _root(g: Graph, x: Tensor) -> Tensor:
    y = _above_zero(g, x)
    if g.chance(0.3):
        return g.node("Pow", [y, g.constant(np.float32(g.pick([0.5, 2.0, 1.7, -1.0])))], x.shape)
    return g.unary(str(g.pick(["Sqrt", "Reciprocal"])), y)


_SPECIAL = {
    "Gelu": _gelu, "Clip": _clip, "PRelu": _prelu, "Swish": _swish, "Round": _round, "Exp": _exp,
    "Log": _log, "Sqrt": _root,
}  # fmt: skip


def with_constant(g: Graph, x: Tensor) -> Tensor:
    """An arithmetic operator with a constant that broadcasts."""
    operator = str(g.pick(["Add", "Add", "Mul", "Mul", "Sub", "Div", "Max", "Min", "Pow"]))
    if operator == "Pow":
        return g.node("Pow", [x, g.constant(np.float32(2))], x.shape)
    if operator == "Div":
        return g.node("Div", [x, g.positive(())], x.shape)
    other = g.second(x)
    return g.node(operator, [x, other] if g.chance(0.7) else [other, x], x.shape)


def with_value(g: Graph, x: Tensor) -> Tensor | None:
    """An arithmetic operator with another value of the graph, of any shape that broadcasts."""
    fitting = [y for y in g.values if _joined(x, y) is not None and y.name != x.name] or [x]
    y = fitting[int(g.random.integers(len(fitting)))]
    shape = _joined(x, y)
    assert shape is not None
    operator = str(g.pick(["Add", "Add", "Add", "Mul", "Sub", "Max", "Min", "Sum", "Mean", "Div"]))
    if operator in ("Sum", "Mean"):
        return g.node(operator, [x, y, x] if g.chance(0.3) else [x, y], shape)
    if operator == "Div":
        return g.node("Div", [x, _above_zero(g, y)], shape)
    return g.node(operator, [x, y] if g.chance(0.5) else [y, x], shape)


def _joined(x: Tensor, y: Tensor) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(x.shape, y.shape) if x.rank == y.rank else None
    except ValueError:
        return None


def choice(g: Graph, x: Tensor) -> Tensor:
    """One of two numbers by a comparison."""
    test = g.node(forms.comparison(g), [x, g.numbers((), 0.5)], x.shape, "bool")
    if g.chance(0.3):
        test = g.node("Not", [test], x.shape, "bool")
    same = [y for y in g.values if y.shape == x.shape and y.name != x.name]
    other = g.pick(same).name if same and g.chance(0.5) else g.second(x)  # type: ignore[attr-defined]
    return g.node("Where", [test, x, other] if g.chance(0.5) else [test, other, x], x.shape)


def through_integers(g: Graph, x: Tensor) -> Tensor:
    """Casts to integers or truths, something with these, and back."""
    scaled = g.node("Mul", [x, g.constant(np.float32(g.random.uniform(2, 9)))], x.shape)
    whole = g.cast(scaled, str(g.pick(["int32", "int64"])))
    if g.chance(0.5):
        number = g.constant(np.array(g.between(1, 5), whole.dtype))
        whole = g.node(
            str(g.pick(["Add", "Mul", "Sub", *(["Max", "Min"] if g.opset >= 12 else [])])),
            [whole, number],
            x.shape,
            whole.dtype,
        )
    if g.chance(0.2):
        g.keep(whole)
    return g.cast(whole, "float32")


def batch_normalization(g: Graph, x: Tensor) -> Tensor:
    c = (x.shape[1],)
    parameters = [g.positive(c), g.numbers(c, 0.5), g.numbers(c, 0.5), g.positive(c)]
    return g.node("BatchNormalization", [x, *parameters], x.shape, epsilon=1e-5)


def norm_of_image(g: Graph, x: Tensor) -> Tensor | None:
    if x.size // x.shape[0] // x.shape[1] < 2:
        return None
    c = x.shape[1]
    operator = str(g.pick(["InstanceNormalization", "GroupNormalization", "LRN"]))
    if operator == "LRN" and x.rank == 4:
        size = int(g.pick([3, 5]))  # type: ignore[call-overload]
        return g.node("LRN", [x], x.shape, size=size, alpha=0.1, beta=0.75, bias=1.0)
    if operator != "GroupNormalization" or g.opset < 21:
        return g.node("InstanceNormalization", [x, g.positive((c,)), g.numbers((c,), 0.5)], x.shape)
    groups = int(g.pick([n for n in range(1, c + 1) if c % n == 0]))  # type: ignore[call-overload]
    return g.node(
        "GroupNormalization", [x, g.positive((c,)), g.numbers((c,), 0.5)], x.shape, num_groups=groups
    )


def layer_norm(g: Graph, x: Tensor) -> Tensor | None:
    """Over the last axes, as one operator or written out, with or without a mean."""
    if x.shape[-1] < 3:
        return None
    if g.opset >= 17 and g.chance(0.6):
        axis = x.rank - (2 if x.rank > 2 and g.chance(0.3) else 1)
        shape = x.shape[axis:]
        operands = [x, g.positive(shape), *([g.numbers(shape, 0.5)] if g.chance(0.7) else [])]
        return g.node("LayerNormalization", operands, x.shape, axis=axis - x.rank, epsilon=1e-5)
    y = x
    if g.chance(0.6):
        y = g.node("Sub", [x, _mean(g, x)], x.shape)
    square = g.node("Pow", [y, g.constant(np.float32(2))], x.shape)
    mean = _mean(g, square)
    root = g.unary("Sqrt", g.node("Add", [mean, g.constant(np.float32(1e-5))], mean.shape))
    y = g.node("Div", [y, root], x.shape)
    return g.node("Mul", [y, g.positive(x.shape[-1:])], x.shape)


def _mean(g: Graph, x: Tensor) -> Tensor:
    return forms.reduce(g, "ReduceMean", x, [x.rank - 1], keeps=True, written=[-1])
