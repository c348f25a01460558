"""Conditions on the sizes of a call."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.execution.conditions import condition_of
from tvm_mxplan.execution.signature import Port, Signature


@pytest.mark.parametrize(
    "text, met, others",
    [
        ("t % 2 != 0", {"t": 13}, {"t": 16}),
        ("trunc(t / 2) == 6", {"t": 13}, {"t": 14}),
        ("1 < t <= 128", {"t": 128}, {"t": 129}),
        ("n < m or not n == 4", {"n": 3, "m": 1}, {"n": 4, "m": 4}),
        ("max(n, 3) ** 2 - -1 == 10 and m >= 0", {"n": 2, "m": 0}, {"n": 4, "m": 0}),
        ("(t if t > 3 else 7) == 7", {"t": 2}, {"t": 4}),
        ("max == 2", {"max": 2}, {"max": 3}),
        ("7 % n == 1", {"n": 3}, {"n": 0}),
    ],
)
def test_conditions_mean_what_python_means(text, met, others):
    condition = condition_of(text)
    assert condition is not None and condition.names == frozenset(met)
    assert condition.holds(met) and not condition.holds(others)


@pytest.mark.parametrize(
    "text", ["", "t %", "L['x'] == 2", "open(t)", "t.a == 2", "t == 'a'", "t & 1 == 0", "max()"]
)
def test_other_texts_are_none(text):
    assert condition_of(text) is None


def test_calls_are_held_to_conditions_which_files_keep():
    signature = Signature((Port("x", ("t", 3), "float32"),), (), conditions=("t % 2 != 0", "u > 3"))
    for one in (signature, Signature.from_json(signature.to_json())):
        assert one.conditions == signature.conditions
        one.bind([np.zeros((13, 3), "float32")], {})
        with pytest.raises(InvalidInputError, match=r"for sizes of which t % 2 != 0, got t = 16"):
            one.bind([np.zeros((16, 3), "float32")], {})
