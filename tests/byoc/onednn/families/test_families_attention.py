"""Attention as one step: operands in their roles, heads behind rows, and numbers that are handed on."""

from __future__ import annotations

import pytest
from composites import composite_of, shapes, tensor, typed
from tvm import relax, tirx

from tvm_mxplan.byoc.onednn.families import attention as family
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.attention import Attention, attention

N = tirx.Var("n", "int64")


def operands(heads: object = 4, shared: object = 2, dtype: str = "float32") -> list[relax.Var]:
    return [
        tensor("q", 2, heads, 3, 8, dtype=dtype),
        tensor("k", 2, shared, 5, 8, dtype=dtype),
        tensor("v", 2, shared, 5, 6, dtype=dtype),
    ]


@pytest.mark.parametrize("kind", [Attention(0.5), Attention(0.25, "first"), Attention(1.0, "last", True)])
def test_the_step_has_the_numbers_of_the_operator(kind: Attention) -> None:
    c = composite_of(attention(kind, *operands()))
    family.translate(c)
    (step,) = c.builder.steps
    assert step.attrs == ir.Attention(kind.scale, kind.causal, kind.nan_is_zero)
    assert shapes(c, step) == {
        "src": (2, 4, 3, 8), "key": (2, 2, 5, 8), "value": (2, 2, 5, 6), "dst": (2, 3, 4, 6),
    }  # fmt: skip


def test_the_result_shows_heads_in_front_of_rows() -> None:
    c = composite_of(attention(Attention(0.5), *operands()))
    seen = c.builder.values[family.translate(c)]
    assert (seen.shape, seen.layout, seen.alias_of) == ((2, 4, 3, 6), "acbd", c.builder.steps[0].dst)


def test_a_mask_is_the_fourth_operand() -> None:
    c = composite_of(attention(Attention(0.5), *operands(), tensor("m", 1, 1, 3, 5)))
    family.translate(c)
    assert shapes(c, c.builder.steps[0])["mask"] == (1, 1, 3, 5)


def test_heads_have_to_be_known() -> None:
    asked = [
        (operands(), None),
        (operands(dtype="float16"), "element type float16"),
        (operands(heads=N, shared=N), "an unknown number of heads"),
        (operands(heads=4, shared=N), "an unknown number of heads"),
        ([*operands(), tensor("m", 2, N, 3, 5)], None),
    ]
    for given, expected in asked:
        reason = family.check({"root": typed(attention(Attention(0.5), *given))})
        assert reason is None if expected is None else expected in str(reason)
