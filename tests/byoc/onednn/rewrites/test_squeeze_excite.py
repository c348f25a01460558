"""Images times gates made of their means: which become one step, which stay, and the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from small_programs import Small, chain, fused, kinds

from tvm_mxplan.core.program import program as ir

IMAGE = (2, 24, 6, 5)


def pooled(b: Small, src: int, kernel: tuple[int, ...], algorithm: str = "avg_exclude_padding") -> int:
    shape = b.shape(src)
    out = tuple(extent // k for extent, k in zip(shape[2:], kernel, strict=True))
    axes = len(kernel)
    attrs = ir.Pooling(algorithm, kernel, kernel, (0,) * axes, (1,) * axes)  # type: ignore[arg-type]
    return b.step("pooling", attrs, (*shape[:2], *out), [("src", src)])


def means(b: Small, src: int) -> int:
    return pooled(b, src, b.shape(src)[2:])


def biased(b: Small, src: int) -> int:
    shape = b.shape(src)
    vector = (1, shape[1]) if len(shape) == 2 else (1, shape[1], 1, 1)
    return b.binary(src, b.numbers(*vector))


def by_convolutions(b: Small, made: int, functions: tuple[str, str]) -> int:
    hidden = b.eltwise(biased(b, b.conv(made, 6)), functions[0])
    return b.eltwise(biased(b, b.conv(hidden, b.shape(made)[1])), functions[1], 0.2, 0.5)


def by_rows(b: Small, made: int, functions: tuple[str, str]) -> int:
    samples, channels = b.shape(made)[:2]
    hidden = b.eltwise(biased(b, b.matmul(b.reshape(made, (samples, channels)), 6)), functions[0])
    gate = b.eltwise(biased(b, b.matmul(hidden, channels)), functions[1], 0.2, 0.5)
    return b.reshape(gate, (samples, channels, 1, 1))


def by_rows_and_late_functions(b: Small, made: int, functions: tuple[str, str]) -> int:
    """Reshapes stand between products and their functions, and an axis of 1 is elsewhere."""
    samples, channels = b.shape(made)[:2]
    last = b.reshape(made, (samples, 1, channels))
    hidden = b.eltwise(b.reshape(b.matmul(last, 6), (samples, 6)), functions[0])
    gate = b.reshape(b.matmul(b.reshape(hidden, (samples, 1, 6)), channels), (samples, channels, 1, 1))
    return b.eltwise(gate, functions[1], 0.2, 0.5)


Form = Callable[[Small, int, tuple[str, str]], int]
FORMS = [by_convolutions, by_rows, by_rows_and_late_functions]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("functions", [("relu", "logistic"), ("swish", "hardsigmoid"), ("relu", "clip")])
def test_both_products_become_one_step(form: Form, functions: tuple[str, str]) -> None:
    b = Small(IMAGE, IMAGE)
    x = b.eltwise(b.inputs[0], "tanh")
    gate = form(b, means(b, x), functions)
    after = fused(b, b.binary(x, gate, "mul"))
    assert kinds(after) == ["eltwise", "squeeze_excite"]
    attrs = after.steps[-1].attrs
    assert isinstance(attrs, ir.SqueezeExcite) and (attrs.function, attrs.gate) == functions


def test_one_product_alone() -> None:
    b = Small(IMAGE, IMAGE)
    gate = b.eltwise(biased(b, b.conv(means(b, b.inputs[0]), 24)), "hardsigmoid", 0.2, 0.5)
    after = fused(b, b.binary(b.inputs[0], gate, "mul"))
    assert kinds(after) == ["squeeze_excite"]
    assert {operand.role for operand in after.steps[0].operands} == {"src", "weights", "bias", "dst"}


@pytest.mark.parametrize("form", FORMS)
def test_means_in_stages_and_what_follows(form: Form) -> None:
    b = Small((1, 24, 12, 10), (1, 24, 12, 10), (1, 24, 12, 10))
    made = pooled(b, pooled(b, b.inputs[0], (3, 2)), (4, 5))
    scaled = b.binary(b.inputs[0], form(b, made, ("relu", "logistic")), "mul")
    after = fused(b, b.eltwise(b.binary(scaled, b.inputs[1]), "relu"))
    assert kinds(after) == ["squeeze_excite"] and chain(after.steps[0]) == ["add", "relu"]


def test_two_in_a_row_are_two_steps() -> None:
    b = Small(IMAGE, IMAGE)
    x = b.inputs[0]
    for form in FORMS:
        x = b.binary(x, form(b, means(b, x), ("relu", "logistic")), "mul")
    assert kinds(fused(b, x)) == ["squeeze_excite"] * 3


def _of_another(b: Small, gate: Form) -> int:
    return b.binary(b.inputs[0], gate(b, means(b, b.inputs[1]), ("relu", "logistic")), "mul")


def _of_maxima(b: Small, gate: Form) -> int:
    made = pooled(b, b.inputs[0], b.shape(b.inputs[0])[2:], "max")
    return b.binary(b.inputs[0], gate(b, made, ("relu", "logistic")), "mul")


def _of_a_part(b: Small, gate: Form) -> int:
    """The means of all but the last rows."""
    attrs = ir.Pooling("avg_exclude_padding", (5, 5), (1, 1), (0, 0), (1, 1))
    shape = (*b.shape(b.inputs[0])[:2], 2, 1)
    made = b.step("pooling", attrs, shape, [("src", b.inputs[0])])
    made = b.step("slice", ir.Slice((0, 0, 0, 0)), (*shape[:2], 1, 1), [("src", made)])
    return b.binary(b.inputs[0], gate(b, made, ("relu", "logistic")), "mul")


def _read_twice(b: Small, gate: Form) -> int:
    made = means(b, b.inputs[0])
    scaled = b.binary(b.inputs[0], gate(b, made, ("relu", "logistic")), "mul")
    return b.binary(scaled, made)


def _gate_added(b: Small, gate: Form) -> int:
    return b.binary(b.inputs[0], gate(b, means(b, b.inputs[0]), ("relu", "logistic")), "add")


def _of_no_function_that_kernels_have(b: Small, gate: Form) -> int:
    return b.binary(b.inputs[0], gate(b, means(b, b.inputs[0]), ("gelu_erf", "logistic")), "mul")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "build",
    [
        _of_another, _of_maxima, _of_a_part, _read_twice, _gate_added,
        _of_no_function_that_kernels_have,
    ],
)  # fmt: skip
def test_what_is_no_gate_of_its_own_means_stays(build: Callable[[Small, Form], int], form: Form) -> None:
    b = Small(IMAGE, IMAGE, IMAGE)
    assert "squeeze_excite" not in kinds(fused(b, build(b, form)))


def test_weights_that_are_read_elsewhere_stay_there() -> None:
    b = Small(IMAGE, IMAGE)
    weights = b.constant(np.full((24, 24, 1, 1), 0.05, "float32"))
    attrs = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)

    def product(src: int) -> int:
        shape = (*b.shape(src)[:1], 24, *b.shape(src)[2:])
        return b.step("convolution", attrs, shape, [("src", src), ("weights", weights)])

    x = product(b.inputs[0])
    gate = b.eltwise(product(means(b, x)), "logistic")
    assert kinds(fused(b, b.binary(x, gate, "mul"))) == ["convolution", "squeeze_excite"]
