"""Operators on numbers of 16 bits: those that move, those whose results jump, those that stand aside."""

from __future__ import annotations

import pytest
from tvm import relax

from tvm_mxplan.core.decisions.origin import Origin
from tvm_mxplan.passes.canonicalize import narrow_operators as module

SELECTING = (
    *("take", "gather_elements", "gather_nd", "index_tensor", "split"),
    *("strided_slice", "dynamic_strided_slice"),
)
MOVING = (
    *("reshape", "permute_dims", "expand_dims", "squeeze", "flatten", "nn.batch_flatten", "concat", "stack"),
    *("broadcast_to", "repeat", "tile", "flip", "where", "layout_transform", "tril", "triu"),
)
DECIDING = (
    *("floor", "ceil", "round", "trunc", "floor_divide", "floor_mod", "mod", "bucketize"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "quantize"),
)


def named(names: tuple[str, ...]) -> set[str]:
    return {f"relax.{name}" for name in names}


def test_elements_are_selected_and_moved_by_these() -> None:
    assert named(SELECTING) <= module.SELECTING <= module.MOVING
    assert named(MOVING) <= module.MOVING


def test_results_jump_of_these() -> None:
    assert named(DECIDING) <= module.DECIDING
    assert not module.DECIDING & module.MOVING, "what is moved is no decision"


@pytest.mark.parametrize(
    ("name", "aside"),
    [
        ("relax.shape_of", True),
        ("relax.size", True),
        ("relax.null_value", True),
        ("relax.print", True),
        ("relax.assert_op", True),
        ("relax.call_tir", True),
        ("relax.call_dps_packed", True),
        ("relax.inspect.tensor_shape_i", True),
        ("relax.memory.view", True),
        ("relax.vm.alloc_storage", True),
        ("relax.builtin.alloc_tensor", True),
        ("relax.grad.no_grad", True),
        ("relax.add", False),
        ("relax.nn.relu", False),
    ],
)
def test_calls_that_stand_aside(name: str, aside: bool) -> None:
    class Called:
        op = type("Op", (), {"name": name})

    assert module.is_aside(Called) == aside  # type: ignore[arg-type]


def test_origins_say_the_type_that_the_model_computes_in() -> None:
    named = module.stated_in((Origin("a", "Relu"), Origin("b", "Add")), "float16")
    assert named == (Origin("a", "Relu", computes="float16"), Origin("b", "Add", computes="float16"))
    assert module.stated_in((), "bfloat16") == (Origin("", computes="bfloat16"),)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_attributes_that_state_a_result_of_16_bits(dtype: str) -> None:
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    for call, name in (
        (relax.op.astype(x, dtype), "dtype"),
        (relax.op.matmul(x, x, out_dtype=dtype), "out_dtype"),
    ):
        assert str(getattr(module.widened_attributes(call.attrs), name)) == "float32"
    wide = relax.op.astype(x, "float64").attrs
    assert module.widened_attributes(wide).same_as(wide)
    assert module.widened_attributes(None) is None
