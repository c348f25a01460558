"""Conversions and dequantised weights: types and numbers that are taken, and the operands of their steps."""

from __future__ import annotations

import numpy as np
import pytest
from composites import composite_of, roles, tensor, typed
from tvm import relax, tirx

from tvm_mxplan.byoc.rewrites.quantized import composites as family
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.quantized import dynamic_dequantize, dynamic_quantize

SHAPE = (2, 3, 4, 5)
Numbers = float | list[float] | relax.Expr


def constant(numbers: object, dtype: str) -> relax.Expr:
    return numbers if isinstance(numbers, relax.Expr) else relax.const(np.array(numbers, dtype))


def quantize(
    data: relax.Expr, scale: object = 0.5, zero: object = 3, axis: int = -1, dtype: str = "uint8"
) -> relax.Call:
    zero_type = dtype if dtype in ("int8", "uint8") else "int8"
    numbers = constant(scale, "float32"), constant(zero, zero_type)
    return typed(relax.op.quantize(data, *numbers, axis=axis, out_dtype=dtype))


def dequantize(
    data: relax.Expr, scale: object = 0.5, zero: object = 3, axis: int = -1, dtype: str = "float32"
) -> relax.Call:
    numbers = constant(scale, "float32"), constant(zero, "int8")
    return typed(relax.op.dequantize(data, *numbers, axis=axis, out_dtype=dtype))


def image(*shape: object, dtype: str = "int8") -> relax.Var:
    return tensor("x", *(shape or SHAPE), dtype=dtype)


REAL = "float32"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: quantize(image(dtype=REAL)), None),
        (lambda: quantize(image(dtype=REAL), dtype="int8"), None),
        (lambda: dequantize(image()), None),
        (lambda: quantize(image(dtype=REAL), [0.5], [3], axis=1), None),
        (lambda: dequantize(image(dtype="int32")), "integers of int32, expected uint8 or int8"),
        (lambda: dequantize(image(), dtype="float16"), "real numbers of float16, expected float32"),
        (lambda: quantize(image(dtype="float16")), "real numbers of float16, expected float32"),
        (lambda: dequantize(image(1, 1, 1, 1, 2, 3)), None),
        (lambda: dequantize(image(1, 1, 1, 1, 1, 2, 3)), "rank 7, expected 1 to 6"),
        (lambda: dequantize(image(7)), None),
        (lambda: dequantize(image(tirx.Var("n", "int64"), 3)), None),
        (lambda: dequantize(image(2, 0, 3)), "an empty tensor"),
        (lambda: dequantize(relax.const(np.ones((2, 3), "int8"))), "constants only"),
        (lambda: dequantize(image(), [0.5, 0.25, 1.0], 3, axis=1), "a scale for each of several channels"),
        (lambda: dequantize(image(), 0.5, [1, 2, 3], axis=1), "a scale for each of several channels"),
        (lambda: dequantize(image(), 0.0), "a scale that is not above 0 and finite"),
        (lambda: dequantize(image(), -0.5), "a scale that is not above 0 and finite"),
        (lambda: dequantize(image(), float("inf")), "a scale that is not above 0 and finite"),
        (lambda: quantize(image(dtype=REAL), 2.938e-39), "a scale whose inverse is not finite"),
        (lambda: quantize(image(dtype=REAL), 2.939e-39), None),
    ],
)
def test_conversions_that_are_taken(call, reason: str | None) -> None:
    answer = family.conversion_ok({"root": call()})
    assert answer is None if reason is None else str(answer).startswith(reason)


def test_a_conversion_of_an_unknown_shape_is_left() -> None:
    unknown = relax.Var("x", relax.TensorType(dtype="int8", ndim=2))
    answer = family.conversion_ok({"root": dequantize(unknown)})
    assert answer == "a shape that is not known at compile time"


@pytest.mark.parametrize(
    ("scale", "zero", "axis", "reason"),
    [
        ([0.5, 0.25, 1.0], [1, 2, 3], 1, None),
        ([0.5, 0.25, 1.0], 3, -3, None),
        (0.5, [1, 2, 3], 1, None),
        ([0.5, 0.25, 1.0, 2.0], 3, -2, None),
        ([0.5] * 5, [1] * 5, 3, None),
        ([0.5, 0.0, 1.0], 3, 1, "a scale that is not above 0 and finite"),
        ([0.5, float("nan"), 1.0], 3, 1, "a scale that is not above 0 and finite"),
        (tensor("s"), 3, 1, "a scale or zero point that is no constant"),
        (0.5, tensor("z", dtype="int8"), 1, "a scale or zero point that is no constant"),
    ],
)
def test_numbers_of_weights(scale: object, zero: object, axis: int, reason: str | None) -> None:
    assert family.numbers_ok(dequantize(image(), scale, zero, axis)) == reason


class Stated:
    """A call with another axis or other numbers than Relax would let pass."""

    def __init__(
        self, scale: list[float], zero: list[int], axis: int, shape: tuple[int, ...] = SHAPE
    ) -> None:
        self.args = [image(*shape), constant(scale, "float32"), constant(zero, "int8")]
        self.attrs = type("Attrs", (), {"axis": axis})


@pytest.mark.parametrize(
    ("scale", "zero", "axis", "reason"),
    [
        ([0.5, 0.25, 1.0], [3], 4, "axis 4 of a tensor of rank 4"),
        ([0.5], [1, 2, 3], -5, "axis -5 of a tensor of rank 4"),
        ([0.5], [3], 9, None),
        ([0.5, 0.25], [3], 1, "2 scales and 1 zero points for 3 channels"),
        ([0.5], [3, 4], 1, "1 scales and 2 zero points for 3 channels"),
        ([0.5, 0.25], [3, 4], -4, None),
    ],
)
def test_numbers_fit_the_axis_along_which_they_stand(scale, zero, axis: int, reason: str | None) -> None:
    assert family.numbers_ok(Stated(scale, zero, axis)) == reason  # type: ignore[arg-type]


def product(source: relax.Expr, weights: relax.Call) -> dict[str, relax.Expr]:
    stand_in = relax.Var("w", weights.ty)
    return {"root": typed(relax.op.matmul(source, stand_in)), "numbers": weights}


def test_products_of_dequantised_weights() -> None:
    def weights(dtype: str = "int8", to: str = REAL, scale: object = 0.5) -> relax.Call:
        return dequantize(relax.const(np.ones((5, 4), dtype)), scale, 3, dtype=to)

    n, ranks = tirx.Var("n", "int64"), (1, 1, 1, 1, 2, 5)
    asked = [
        (product(image(2, 5, dtype=REAL), weights()), None),
        (product(image(n, 5, dtype=REAL), weights()), None),
        (product(image(2, 5, dtype=REAL), weights("uint8")), None),
        (product(image(*ranks, dtype=REAL), weights()), None),
        (product(image(2, 5, dtype=REAL), weights("int32")), "weights of int32, expected uint8 or int8"),
        (product(image(2, 5, dtype="float16"), weights(to="float16")), "real numbers of float16 and float16"),
        (product(relax.const(np.ones((2, 5), REAL)), weights()), "constants only"),
        (product(image(1, *ranks, dtype=REAL), weights()), "a source of shape (1, 1, 1, 1, 1, 2, 5)"),
        (product(image(0, 5, dtype=REAL), weights()), "a source of shape (0, 5)"),
        (product(image(2, 5, dtype=REAL), weights(scale=-1.0)), "a scale that is not above 0 and finite"),
    ]
    for match, reason in asked:
        answer = family.weights_ok(match)
        assert answer is None if reason is None else str(answer).startswith(reason)
    unknown = relax.Var("x", relax.TensorType(dtype=REAL, ndim=2))
    assert family.weights_ok(product(unknown, weights())) == "a shape that is not known at compile time"


# --- steps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "side", "dtype"),
    [
        (lambda: quantize(image(dtype=REAL), 0.5, 3, axis=1), "dst", "uint8"),
        (lambda: dequantize(image(), 0.5, 3, axis=-3), "src", REAL),
    ],
)
def test_a_conversion_is_a_step_with_vectors_of_numbers(call, side: str, dtype: str) -> None:
    c = composite_of(call())
    dst = family.translate(c)
    (step,) = c.builder.steps
    found = roles(c, step)
    assert step.attrs == ir.Quantization(1), "counted from the front"
    assert found == {
        "src": 0, f"{side}_scale": found[f"{side}_scale"], f"{side}_zero_point": found[f"{side}_zero_point"],
        "dst": dst,
    }  # fmt: skip
    assert (c.builder.values[dst].shape, c.builder.values[dst].dtype) == (SHAPE, dtype)
    scale, zero = (
        c.builder.constants[c.builder.values[found[f"{side}_{one}"]].index] for one in ("scale", "zero_point")
    )
    assert (scale.dtype, zero.dtype) == ("float32", "int32")
    assert (scale.tolist(), zero.tolist()) == ([0.5], [3])


@pytest.mark.parametrize(
    ("shape", "axis", "front"), [((6,), -1, 0), ((6,), 0, 0), ((4, 6), -1, 1), ((4, 6), -2, 0)]
)
def test_axes_are_counted_from_the_front_in_any_rank(shape: tuple[int, ...], axis: int, front: int) -> None:
    c = composite_of(dequantize(image(*shape), 0.5, 3, axis=axis))
    family.translate(c)
    assert c.builder.steps[0].attrs == ir.Quantization(front)


def test_a_zero_point_of_zero_is_none() -> None:
    c = composite_of(dequantize(image(), 0.5, 0))
    family.translate(c)
    assert "src_zero_point" not in roles(c, c.builder.steps[0])


def test_zero_points_of_which_one_is_not_zero_stay() -> None:
    c = composite_of(dequantize(image(), 0.5, [0, 1, 0], axis=1))
    family.translate(c)
    assert "src_zero_point" in roles(c, c.builder.steps[0])


def test_weights_are_dequantised_by_a_step_of_that_name_or_stay() -> None:
    weights = dequantize(relax.const(np.ones((5, 4), "int8")), [0.5, 1.0, 2.0, 4.0], 0, axis=1)
    c = composite_of(typed(relax.op.matmul(image(2, 5, dtype=REAL), image(5, 4, dtype=REAL))))
    value = family.weights_of(c, weights)
    (step,) = c.builder.steps
    assert (step.name, step.attrs, step.dst) == ("weights0", ir.Quantization(1), value)
    plain = relax.const(np.ones((5, 4), REAL))
    assert c.builder.values[family.weights_of(c, plain)].kind == "constant" and len(c.builder.steps) == 1


def test_numbers_of_the_call_are_results_beside_the_integers() -> None:
    c = composite_of(dynamic_quantize(image(2, 5, 3, dtype=REAL)))
    results = family.translate_dynamic(c)
    (step,) = c.builder.steps
    assert step.attrs == ir.DynamicQuantization()
    assert roles(c, step) == dict(
        zip(("src", "dst", "made_scale", "made_zero_point"), (0, *results), strict=True)
    )
    found = [(c.builder.values[value].shape, c.builder.values[value].dtype) for value in results]
    assert found == [((2, 5, 3), "uint8"), ((1,), REAL), ((1,), "int32")]


def test_integers_are_converted_by_numbers_of_the_call() -> None:
    numbers = tensor("s", 1, dtype=REAL), tensor("z", 1, dtype="int32")
    c = composite_of(dynamic_dequantize(image(2, 5, 3), *numbers))
    dst = family.translate_real(c)
    (step,) = c.builder.steps
    assert step.attrs == ir.Quantization(0)
    assert roles(c, step) == {"src": 0, "src_scale": 1, "src_zero_point": 2, "dst": dst}
    assert (c.builder.values[dst].shape, c.builder.values[dst].dtype) == ((2, 5, 3), REAL)


def test_types_and_shapes_of_conversions_by_numbers_of_the_call() -> None:
    numbers = tensor("s", 1, dtype=REAL), tensor("z", 1, dtype="int32")

    def reason(call: relax.Call) -> str | None:
        return family.dynamic_ok({"root": call})

    assert reason(dynamic_quantize(image(2, 5, dtype=REAL))) is None
    assert reason(dynamic_dequantize(image(2, 5), *numbers)) is None
    assert reason(dynamic_dequantize(image(2, 5, dtype="int8"), *numbers)) is None
    assert reason(dynamic_quantize(image(2, 5, dtype="float16"))) == "numbers of float16, expected float32"
    wrong = dynamic_dequantize(image(2, 5, dtype="int32"), *numbers)
    assert reason(wrong) == "numbers of int32, expected uint8 or int8"
    assert reason(dynamic_quantize(image(2, 0, dtype=REAL))) == "an empty tensor"
    assert reason(dynamic_quantize(image(*[2] * 6, dtype=REAL))) is None
    assert reason(dynamic_quantize(image(*[2] * 7, dtype=REAL))) == "rank 7, expected 1 to 6"
    assert reason(dynamic_quantize(relax.const(np.ones(3, REAL)))) == "constants only"
