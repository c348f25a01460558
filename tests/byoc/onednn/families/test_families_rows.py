"""Norms by the mean square and rotations as steps on rows: operands, what is normalized, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from composites import composite_of, roles, shapes, tensor, typed
from tvm import relax, tirx

from tvm_mxplan.byoc.onednn.families import rows
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.attention import rotary

N = tirx.Var("n", "int64")


def norm(x: relax.Expr, weight: relax.Expr, *axes: int) -> relax.Call:
    return relax.op.nn.rms_norm(x, weight, list(axes), epsilon=1e-3)


@pytest.mark.parametrize(
    ("axes", "weight", "flat"),
    [((-1,), (5,), (2, 3, 5)), ((1, 2), (3, 5), (2, 15)), ((0, 1, 2), (2, 3, 5), (1, 30))],
)
def test_the_last_axes_are_normalized_as_one(axes, weight, flat) -> None:
    c = composite_of(norm(tensor("x", 2, 3, 5), tensor("w", *weight), *axes))
    dst = rows.rms_norm(c)
    (step,) = c.builder.steps
    assert step.attrs == ir.RmsNormalization(pytest.approx(1e-3))
    assert shapes(c, step) == {"src": flat, "scale": flat[-1:], "dst": flat}
    assert c.builder.values[dst].shape == (2, 3, 5)


@pytest.mark.parametrize(("numbers", "scaled"), [([1.0, 1.0, 1.0], False), ([1.0, 1.0, 2.0], True)])
def test_a_weight_of_ones_is_left_out(numbers, scaled) -> None:
    c = composite_of(norm(tensor("x", 2, 3), relax.const(np.array(numbers, "float32")), -1))
    rows.rms_norm(c)
    assert ("scale" in roles(c, c.builder.steps[0])) == scaled


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (norm(tensor("x", N, 3, 5), tensor("w", 5), -1), None),
        (norm(tensor("x", N, 3, 5), tensor("w", 3, 5), 1, 2), None),
        (norm(tensor("x", 2, 3, N), tensor("w", N), -1), "symbolic extents that are normalized"),
        (norm(tensor("x", 2, N, 5), tensor("w", N, 5), 1, 2), "symbolic extents that are normalized"),
        (norm(tensor("x", 2, 3, 5), tensor("w", 3), 1), "axes [1] are not the last ones"),
    ],
)
def test_what_is_normalized_has_known_extents(call, reason) -> None:
    answer = rows.check_rms_norm({"root": typed(call)})
    assert answer is None if reason is None else reason in str(answer)


def turned(extent: object, table: object, interleaved: bool = False) -> relax.Call:
    tables = (tensor(name, N, table) for name in ("cosines", "sines"))
    return rotary(tensor("x", 2, 3, N, extent), *tables, width=6, interleaved=interleaved)


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_rotation_reads_its_rows_and_both_tables(interleaved) -> None:
    call = turned(8, 3, interleaved)
    c = composite_of(call)
    dst = rows.rotary(c)
    (step,) = c.builder.steps
    assert step.attrs == ir.Rotary(6, interleaved) and step.dst == dst
    given = {role: c.params[arg] for role, arg in zip(("src", "cosines", "sines"), call.args, strict=True)}
    assert roles(c, step) == {**given, "dst": dst}


def test_rows_and_tables_have_known_extents() -> None:
    assert rows.check_rotary({"root": typed(turned(8, 3))}) is None
    for symbolic in (turned(N, 3), turned(8, N)):
        assert rows.check_rotary({"root": typed(symbolic)}) == "rows of symbolic extents"
