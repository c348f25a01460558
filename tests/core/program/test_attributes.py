"""The table of kinds: every class of attributes has its name in it, as files spell it."""

from __future__ import annotations

import re
from typing import get_args

from tvm_mxplan.core.program import attributes
from tvm_mxplan.core.program.attributes import (
    KIND_OF,
    STEP_KINDS,
    Attributes,
    Convolution,
    Pooling,
    PoolingBackward,
)
from tvm_mxplan.core.program.kinds import gates, movement, sequences
from tvm_mxplan.core.program.kinds.sequences import (
    ATTENTION_CAUSAL,
    RECURRENT_CELLS,
    RECURRENT_DIRECTIONS,
    Attention,
    AttentionCausal,
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


def test_public_classes_of_the_modules_are_kinds() -> None:
    found = {
        one
        for module in (attributes, gates, movement, sequences)
        for name, one in vars(module).items()
        if isinstance(one, type) and one.__module__ == module.__name__ and not name.startswith("_")
    }
    assert found == set(STEP_KINDS.values())


def test_names_of_recurrent_layers_are_those_of_their_types() -> None:
    assert get_args(RecurrentCell) == RECURRENT_CELLS
    assert get_args(RecurrentDirection) == RECURRENT_DIRECTIONS
    assert get_args(AttentionCausal) == ATTENTION_CAUSAL


def test_a_pool_is_not_its_gradient() -> None:
    """They have the same fields, and no rule for the one may take the other."""
    numbers = ("max", (2, 2), (2, 2), (0, 0), (1, 1))
    assert not isinstance(PoolingBackward(*numbers), Pooling)
    assert PoolingBackward(*numbers) != Pooling(*numbers)


def test_what_is_not_said_leaves_the_choice_to_the_library() -> None:
    plain = Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    assert (plain.algorithm, plain.preferred) == ("direct", "")
    assert SumPostOp().scale == 1.0
    assert (Attention(0.5).causal, Attention(0.5).nan_is_zero) == ("no", False)
