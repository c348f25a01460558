"""The table of kinds: every class of attributes has its name in it, as files spell it."""

from __future__ import annotations

import re
from typing import get_args

from tvm_mxplan.core.program import attributes
from tvm_mxplan.core.program.attributes import (
    KIND_OF,
    RECURRENT_CELLS,
    RECURRENT_DIRECTIONS,
    STEP_KINDS,
    Attributes,
    Convolution,
    RecurrentCell,
    RecurrentDirection,
)
from tvm_mxplan.core.program.post_ops import SumPostOp


def test_every_kind_has_the_name_of_its_class() -> None:
    def spelled(name: str) -> str:
        apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        return {"mat_mul": "matmul", "pre_lu": "prelu"}.get(apart, apart)

    assert set(STEP_KINDS.values()) == set(get_args(Attributes))
    for name, cls in STEP_KINDS.items():
        assert name == spelled(cls.__name__)
        assert KIND_OF[cls] == name
    assert len(KIND_OF) == len(STEP_KINDS)


def test_classes_of_the_module_are_kinds() -> None:
    found = {
        one
        for one in vars(attributes).values()
        if isinstance(one, type) and one.__module__ == attributes.__name__
    }
    assert found == set(STEP_KINDS.values())


def test_names_of_recurrent_layers_are_those_of_their_types() -> None:
    assert get_args(RecurrentCell) == RECURRENT_CELLS
    assert get_args(RecurrentDirection) == RECURRENT_DIRECTIONS


def test_what_is_not_said_leaves_the_choice_to_the_library() -> None:
    plain = Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    assert (plain.algorithm, plain.preferred) == ("direct", "")
    assert SumPostOp().scale == 1.0
