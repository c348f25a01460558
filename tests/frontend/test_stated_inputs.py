"""A caller's statements about inputs, as far as they are checked without a model."""

from __future__ import annotations

from typing import Any

import pytest

from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.frontend.stated_inputs import StatedInputs


@pytest.mark.parametrize(
    "shapes, bounds, said",
    [
        ([[1, 3, 8, 8]], None, "shapes: expected a dict by name, got list"),
        ("x:[1,3]", None, "shapes: expected a dict by name, got str"),
        (None, [(1, 4)], "bounds: expected a dict by name, got list"),
        ({"x": [1.5]}, None, "input 'x': dimension 1.5; expected a number or a name"),
    ],
)
def test_what_states_nothing_is_refused_in_one_line(shapes: Any, bounds: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{said}$"):
        StatedInputs.of(shapes, bounds)


def test_empty_statements_are_none() -> None:
    assert StatedInputs.of(None, None) == StatedInputs.of({}, {}) == StatedInputs()
