"""No step that the runtime knows is without a reference; references hold on numbers worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.estimate import UNIT_ROUNDOFF, Estimate, gamma
from tvm_mxplan.opcheck.references import POST_OPS, REFERENCES, SEVERAL, evaluate
from tvm_mxplan.opcheck.references.elementwise import (
    BINARY_ALGORITHMS,
    FUNCTIONS,
    apply_binary,
    apply_eltwise,
)
from tvm_mxplan.opcheck.references.movement import resampling
from tvm_mxplan.opcheck.references.operands import Operands

RUNTIME = Path(__file__).resolve().parents[2] / "byoc" / "runtime"


def names_in(table: str) -> set[str]:
    """The names in one table of the runtime's algorithms."""
    source = (RUNTIME / "onednn" / "algorithms.cc").read_text()
    body = re.search(rf"algorithm {table}\(.*?\n}}\n", source, re.DOTALL)
    assert body, f"algorithms.cc has no table {table}"
    return set(re.findall(r'\{"(\w+)", algorithm', body.group()))


def test_every_kind_of_step_has_a_reference():
    kinds = set()
    for library in ("onednn", "host"):
        registry = (RUNTIME / library / "steps" / "registry.cc").read_text()
        kinds |= set(re.findall(r'\{"(\w+)", &?Build', registry))
    assert kinds == set(ir.STEP_KINDS)
    assert {*REFERENCES, *SEVERAL} == set(ir.STEP_KINDS.values())
    assert not set(REFERENCES) & set(SEVERAL)


def test_every_post_op_has_a_reference():
    assert set(POST_OPS) == set(get_args(ir.PostOp))


def test_every_function_has_a_reference():
    hosts = (RUNTIME / "host" / "steps" / "elementwise.cc").read_text()
    functions = set(re.findall(r'\{"(\w+)", \{Unary::', hosts))
    assert len(functions) > 10
    assert names_in("EltwiseAlgorithm") | functions == set(FUNCTIONS)
    pairs = set(re.findall(r'\{"(\w+)", Binary::', hosts))
    assert "add" in pairs and names_in("BinaryAlgorithm") | pairs == BINARY_ALGORITHMS


def attributes(kind: str, algorithm: str) -> ir.Attributes:
    return {
        "Pooling": ir.Pooling(algorithm, (1, 1), (1, 1), (0, 0), (1, 1)),
        "Reduction": ir.Reduction(algorithm),
        "Softmax": ir.Softmax(algorithm, 1),
        "Resampling": ir.Resampling(algorithm),
    }[kind]


@pytest.mark.parametrize("kind", ["Pooling", "Reduction", "Softmax", "Resampling"])
def test_every_algorithm_of_a_kind_has_a_reference(kind):
    x = np.full((1, 2, 3, 3), 0.5)
    names = names_in(f"{kind}Algorithm")
    assert names
    for name in names:
        attrs = attributes(kind, name)
        result = REFERENCES[type(attrs)](attrs, Operands({"src": [x]}, x.shape))
        assert np.isfinite(result.value).all()
        assert result.value.shape == x.shape
    if kind in ("Reduction", "Softmax"):
        with pytest.raises(KeyError, match="none"):
            REFERENCES[type(attrs)](attributes(kind, "none"), Operands({"src": [x]}, x.shape))


def test_gamma_is_the_smaller_of_both_bounds():
    assert gamma(9) == 9 * UNIT_ROUNDOFF
    assert gamma(100) == 100 * UNIT_ROUNDOFF
    assert gamma(10_000) == 1000 * UNIT_ROUNDOFF


def test_post_ops_in_their_order():
    """(2 * 3 + 1) -> relu of (7 - 10) = 0 -> + 0.5 * 4, then * 3."""
    step = ir.Step(
        "s",
        ir.MatMul(),
        (),
        (
            ir.BinaryPostOp("sub", 0),
            ir.EltwisePostOp("relu", 0.0, 0.0),
            ir.SumPostOp(0.5),
            ir.BinaryPostOp("mul", 0),
        ),
    )
    number = np.full((1, 1), 1.0)
    operands = {"src": [2 * number], "weights": [3 * number], "bias": [number]}
    estimate = evaluate(step, (1, 1), operands, [10 * number, None, 4 * number, 3 * number])["dst"]
    assert estimate.value == 6.0
    assert 0 < estimate.error < 1e-5


def test_errors_pass_through_functions_by_their_slope():
    x, error = np.array([-2.0, 0.5, 3.0]), np.full(3, 1e-4)
    elu = apply_eltwise(Estimate(np.array([-1e-4, 1e-4])), "elu", 0.5, 0.0)
    assert elu.error[0] > 0.5 * 2**-25 > elu.error[1], "1 is taken from a rounded exponential"
    square = apply_eltwise(Estimate(x, error), "square", 0.0, 0.0)
    np.testing.assert_allclose(square.error, 4 * np.abs(x) * error, rtol=1e-2)  # both ends count
    relu = apply_eltwise(Estimate(x, error), "relu", 0.0, 0.0)
    assert relu.error[0] == 0
    assert relu.error[2] >= 1e-4


def test_resampling_by_hand():
    x = np.array([0.0, 1.0]).reshape(1, 1, 2)
    linear = resampling(ir.Resampling("linear"), Operands({"src": [x]}, (1, 1, 4)))
    np.testing.assert_allclose(linear.value.ravel(), [0, 0.25, 0.75, 1])
    nearest = resampling(ir.Resampling("nearest"), Operands({"src": [x]}, (1, 1, 4)))
    np.testing.assert_array_equal(nearest.value.ravel(), [0, 0, 1, 1])
    assert nearest.error == 0


def test_a_root_of_what_may_be_below_zero_is_bounded_by_nothing():
    """As in a norm: the average may be 0, its rounding takes it below, and 1 / sqrt of that is no number."""
    averages = Estimate(np.array([1e-6, 0.25]), np.array([1e-5, 1e-8]))
    with np.errstate(invalid="ignore"):
        rooted = apply_eltwise(averages, "pow", 1.0, -0.5)
        scaled = apply_binary(rooted, "mul", np.array([0.0, 3.0]))
    assert rooted.value == pytest.approx([1000.0, 2.0])
    assert np.isposinf(rooted.error[0]) and 0 < rooted.error[1] < 1e-4
    assert np.isposinf(scaled.error[0]) and scaled.error[1] < 1e-3
