"""Real tensors as integers: which numbers are the same, centred weights, scales for each output, views."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.byoc.rewrites.quantized.forms import (
    Form,
    Numbers,
    numbers_of,
    real_numbers,
    view_of,
    weights_form,
)
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder

ONE = Numbers((0.5,), (3,), 10, 11)
ROW = Numbers((0.5, 0.25), (0, 0), 10, 11, axis=1)
COMPUTED = Numbers((), (), 10, 11, is_known=False)


def graph(*constants: np.ndarray) -> tuple[Graph, list[int]]:
    """A program of one step, and constants beside it."""
    b = ProgramBuilder("p")
    x, out = b.port("input", "x", (2, 3), "float32"), b.port("output", "y", (2, 3), "float32")
    b.write_output(b.step("relu", ir.Eltwise("relu", 0.0, 0.0), (2, 3), [("src", x)]), out)
    made = Graph(b.finish(), [])
    return made, [made.add_constant(one, f"c{at}", str(one.dtype)) for at, one in enumerate(constants)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (ONE, ONE, True),
        (ONE, replace(ONE, scale_value=20, zero_value=21), True),
        (ONE, replace(ONE, axis=1), True),
        (ONE, replace(ONE, scale=(0.25,)), False),
        (ONE, replace(ONE, zero=(4,)), False),
        (ROW, replace(ROW, scale_value=20), True),
        (ROW, replace(ROW, axis=0), False),
        (ROW, replace(ROW, scale=(0.25, 0.5)), False),
        (ONE, replace(COMPUTED, scale_value=12), False),
        (COMPUTED, replace(ONE, zero_value=12), False),
        (COMPUTED, COMPUTED, True),
        (COMPUTED, replace(COMPUTED, scale_value=12), False),
        (COMPUTED, replace(COMPUTED, zero_value=12), False),
        (COMPUTED, replace(COMPUTED, zero_value=-1), False),
        (replace(ONE, is_known=False), ONE, True),
    ],
)
def test_equal_integers_stand_for_equal_numbers(one: Numbers, other: Numbers, same: bool) -> None:
    """Of numbers that one of both computes, those by the same values."""
    assert one.same_as(other) == same


@pytest.mark.parametrize(
    ("numbers", "single"),
    [
        (ONE, True),
        (ROW, False),
        (COMPUTED, True),
        (replace(ONE, scale=(1.0, 2.0)), False),
        (replace(ONE, zero=(1, 2)), False),
    ],
)
def test_one_scale_and_one_zero_point(numbers: Numbers, single: bool) -> None:
    assert numbers.is_single == single


def test_operands_of_a_side() -> None:
    assert ONE.operands("src") == [ir.Operand("src_scale", 10), ir.Operand("src_zero_point", 11)]
    assert replace(ONE, zero_value=-1).operands("dst") == [ir.Operand("dst_scale", 10)]
    assert replace(ONE, zero_value=0).operands("dst")[1:] == [ir.Operand("dst_zero_point", 0)]


def test_numbers_of_a_conversion() -> None:
    made, (scale, zero) = graph(np.array([0.5, 2.0], "float32"), np.array([1, -2], "int32"))
    operands = [ir.Operand("src", 0), ir.Operand("dst_scale", scale), ir.Operand("dst", 1)]
    step = ir.Step("q", ir.Quantization(1), tuple(operands))
    assert numbers_of(made, step, "dst") == Numbers((0.5, 2.0), (0,), scale, -1, 1)
    operands[2:2] = [ir.Operand("dst_zero_point", zero)]
    step = replace(step, operands=tuple(operands))
    assert numbers_of(made, step, "dst") == Numbers((0.5, 2.0), (1, -2), scale, zero, 1)
    given = replace(step, operands=(*operands[:1], ir.Operand("dst_scale", 0), *operands[2:]))
    assert numbers_of(made, given, "dst") == Numbers((), (), 0, zero, 1, is_known=False)


@pytest.mark.parametrize(
    ("dtype", "numbers", "zero", "centred"),
    [
        ("int8", [-128, 0, 127], 0, [-128, 0, 127]),
        ("uint8", [0, 128, 255], 128, [-128, 0, 127]),
        ("uint8", [0, 127, 254], 127, [-127, 0, 127]),
        ("uint8", [0, 128, 255], 127, None),
        ("uint8", [0, 128, 255], 129, None),
        ("uint8", [0, 5, 127], 0, [0, 5, 127]),
        ("uint8", [0, 5, 128], 0, None),
        ("int8", [-120, 0, 127], 8, [-128, -8, 119]),
        ("int8", [-121, 0, 127], 8, None),
    ],
)
def test_weights_are_signed_integers_around_zero(
    dtype: str, numbers: list[int], zero: int, centred: list[int] | None
) -> None:
    made, (stored,) = graph(np.array(numbers, dtype).reshape(3, 1))
    form = Form(stored, Numbers((0.5,), (zero,), 0, 0))
    found = weights_form(made, form, stored, stored, (0,))
    assert (found is None) == (centred is None)
    if found is not None:
        array = made.constant(found.value)
        assert array is not None and array.dtype == np.int8
        np.testing.assert_array_equal(array.reshape(-1), centred)
        np.testing.assert_array_equal(found.scale, np.float32([0.5]))
        assert (found.value == stored) == (dtype == "int8" and not zero), "no copy where none is needed"


@pytest.mark.parametrize(
    ("shape", "axis", "outputs", "count"),
    [((2, 3), 0, (0,), 2), ((2, 3), 1, (1,), 3), ((2, 3), 1, (0,), None), ((2, 3), 0, (1,), None),
     ((2, 3, 4), 1, (0, 1), 6), ((2, 3, 4), 0, (0, 1), 6), ((2, 3, 4), 2, (0, 1), None)],
)  # fmt: skip
def test_scales_stand_along_outputs(
    shape: tuple[int, ...], axis: int, outputs: tuple[int, ...], count: int | None
) -> None:
    made, (stored,) = graph(np.ones(shape, "int8"))
    row = tuple(float(one) for one in np.linspace(0.5, 1.0, shape[axis]))
    form = Form(stored, Numbers(row, (0,) * len(row), 0, -1, axis))
    found = weights_form(made, form, stored, stored, outputs)
    if count is None:
        assert found is None
        return
    assert found is not None and found.scale.shape == (count,) and found.scale.dtype == np.float32
    expected = np.broadcast_to(
        np.float32(row).reshape([-1 if at == axis else 1 for at in range(len(shape))]), shape
    )
    first = expected[tuple(slice(None) if at in outputs else slice(0, 1) for at in range(len(shape)))]
    np.testing.assert_array_equal(found.scale, first.reshape(-1))


def test_weights_that_the_region_computes_are_none() -> None:
    made, _ = graph()
    local = made.add_local("w", (2, 3), "int8")
    assert weights_form(made, Form(local, ONE), local, local, (0,)) is None


@pytest.mark.parametrize(("axis", "scale"), [(0, (0.5, 0.25)), (1, (0.5, 0.25, 2.0)), (0, (0.5,))])
def test_real_numbers_of_constants_are_rounded_once(axis: int, scale: tuple[float, ...]) -> None:
    integers = np.array([[0, 200, 255], [7, 8, 9]], "uint8")
    made, (stored,) = graph(integers)
    zero = tuple(range(100, 100 + len(scale)))
    found = real_numbers(made, Form(stored, Numbers(scale, zero, 0, 0, axis)))
    rows = [-1 if at == axis else 1 for at in range(2)] if len(scale) > 1 else [1, 1]
    expected = (integers.astype("float64") - np.reshape(zero, rows)) * np.reshape(scale, rows)
    assert found is not None and found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    assert real_numbers(made, Form(made.add_local("v", (2, 3), "uint8"), ONE)) is None


def viewed(**changed: object) -> tuple[Graph, int, int, int]:
    """A graph with a real tensor, a view of it, and integers of it."""
    made, _ = graph()
    real = made.add_local("real", (2, 6))
    held = made.add_local("held", (2, 6), "uint8")
    view = made.add(ir.Value("view", (3, 4), "float32", "local", "ab", alias_of=real))
    made.values[view] = replace(made.values[view], **changed)  # type: ignore[arg-type]
    return made, real, held, view


def test_a_view_of_integers_has_their_type_and_its_own_shape() -> None:
    made, real, held, view = viewed()
    found = view_of(made, Form(held, ONE), real, view)
    assert found is not None and found.numbers == ONE
    seen = made.values[found.value]
    assert (seen.dtype, seen.shape, seen.layout, seen.alias_of) == ("uint8", (3, 4), "ab", held)
    assert (seen.kind, seen.index, seen.offset, seen.nbytes) == ("local", -1, -1, -1)


def test_views_that_integers_have_not() -> None:
    made, real, held, view = viewed()
    assert view_of(made, Form(held, ROW), real, view) is None, "scales along an axis that it may not have"
    made, real, held, view = viewed(alias_offset=8)
    assert view_of(made, Form(held, ONE), real, view) is None
    made, real, held, view = viewed()
    made.values[held] = replace(made.values[held], layout="ba")
    assert view_of(made, Form(held, ONE), real, view) is None
    made, real, held, view = viewed()
    made.values[held] = replace(made.values[held], shape=(3, 4))
    assert view_of(made, Form(held, ONE), real, view) is None


def test_weights_without_numbers_are_in_range() -> None:
    made, (stored,) = graph(np.empty((0, 3), "uint8"))
    found = weights_form(made, Form(stored, Numbers((0.5,), (3,), 0, 0)), stored, stored, (0,))
    assert found is not None and made.values[found.value].shape == (0, 3)
