"""Tensors cross in a physical layout where that is cheaper: decided on plain data, exact on small chains."""

from __future__ import annotations

import numpy as np
import pytest
from costs_by_hand import rates

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.step_facts import reorder_facts
from tvm_mxplan.passes.borders.border_choice import (
    BorderChoice,
    BorderGraph,
    BorderOperator,
    BorderTensor,
    Give,
    Take,
    _Chooser,
    _distinct,
    choose_layouts,
)

PLAIN, LAST, BLOCKED = "abcd", "acdb", "aBcd16b"
ZERO, ONE = np.float32(0), np.float32(1)


def graph(
    channels: int,
    tails: list[np.float32 | None],
    operators: list[BorderOperator],
    takes: list[Take],
    gives: list[Give],
    pinned: tuple[int, ...] = (),
) -> BorderGraph:
    tensors = tuple(BorderTensor((1, channels, 28, 28), "float32", tail) for tail in tails)
    return BorderGraph(tensors, tuple(operators), tuple(takes), tuple(gives), frozenset(pinned))


def reorder_us(shape: tuple[int, ...], dtype: str, source: str, target: str) -> float:
    return OneDNN().cost(reorder_facts(shape, dtype, source, target), rates())


def choose(*args: object, **kwargs: object) -> BorderChoice:
    return choose_layouts(graph(*args, **kwargs), reorder_us, rates())  # type: ignore[arg-type]


def test_region_operator_region() -> None:
    choice = choose(64, [ZERO, ZERO], [BorderOperator((0,), 1)], [Take(1, (LAST,))], [Give(0, LAST)])
    assert choice == BorderChoice((LAST,), ((LAST,),), ((LAST,),))


def test_region_to_region() -> None:
    assert choose(64, [ZERO], [], [Take(0, (LAST,))], [Give(0, LAST)]) == BorderChoice(
        (), ((LAST,),), ((LAST,),)
    )


def test_a_plain_source_is_left_to_the_region_that_reads_it() -> None:
    assert choose(64, [None], [], [Take(0, (LAST,))], []) == BorderChoice((), ((PLAIN,),), ())
    assert choose(64, [ZERO], [], [Take(0, (LAST,))], [Give(0, PLAIN)]) == BorderChoice(
        (), ((PLAIN,),), ((PLAIN,),)
    )


def test_two_regions_share_one_reorder_of_their_source() -> None:
    takes = [Take(0, (LAST,)), Take(0, (LAST,))]
    choice = choose(64, [ZERO], [], takes, [Give(0, PLAIN)])
    assert choice == BorderChoice((), ((LAST,), (LAST,)), ((PLAIN, LAST),))


def test_one_reorder_instead_of_two_where_layouts_differ() -> None:
    choice = choose(64, [ZERO], [], [Take(0, (BLOCKED,))], [Give(0, LAST)])
    assert choice == BorderChoice((), ((BLOCKED,),), ((BLOCKED,),))


def test_a_result_that_is_also_wanted_plain_comes_in_both() -> None:
    choice = choose(64, [ZERO], [], [Take(0, (LAST,))], [Give(0, LAST)], pinned=(0,))
    assert choice == BorderChoice((), ((LAST,),), ((PLAIN, LAST),))


def test_the_plain_layout_of_several_comes_first() -> None:
    """Whatever the letters of the others: those of blocks come before it in the alphabet."""
    assert sorted((LAST, PLAIN, BLOCKED)) == [BLOCKED, PLAIN, LAST]
    choice = choose(64, [ZERO], [], [Take(0, (BLOCKED,))], [Give(0, BLOCKED)], pinned=(0,))
    assert choice == BorderChoice((), ((BLOCKED,),), ((PLAIN, BLOCKED),))
    forms = [(0, LAST), (0, BLOCKED), (0, PLAIN), (0, LAST)]
    assert _distinct(PLAIN, forms) == (PLAIN, BLOCKED, LAST)
    assert _distinct(LAST, forms) == (LAST, BLOCKED, PLAIN)


def test_an_input_read_in_two_layouts_comes_in_both() -> None:
    choice = choose(64, [ZERO], [], [Take(0, (PLAIN, LAST))], [Give(0, LAST)])
    assert choice == BorderChoice((), ((PLAIN, LAST),), ((PLAIN, LAST),))


def test_an_operator_whose_result_is_wanted_plain_stays_plain() -> None:
    choice = choose(
        64, [ZERO, ZERO], [BorderOperator((0,), 1)], [Take(1, (LAST,))], [Give(0, LAST)], pinned=(1,)
    )
    assert choice == BorderChoice((PLAIN,), ((PLAIN,),), ((PLAIN,),))


def test_an_operator_with_an_operand_that_is_always_plain_stays_plain() -> None:
    choice = choose(64, [ZERO, None, ZERO], [BorderOperator((0, 1), 2)], [Take(2, (LAST,))], [Give(0, LAST)])
    assert choice == BorderChoice((PLAIN,), ((PLAIN,),), ((PLAIN,),))


def test_nothing_is_physical_for_nothing() -> None:
    """The reorder of the source saves none behind the operator: plain, though it would cost the same."""
    choice = choose(64, [ZERO, ZERO], [BorderOperator((0,), 1)], [Take(1, (PLAIN,))], [Give(0, LAST)])
    assert choice == BorderChoice((PLAIN,), ((PLAIN,),), ((PLAIN,),))


def test_two_sources_meet_in_the_layout_with_fewer_reorders() -> None:
    operators = [BorderOperator((0, 1), 2)]
    gives = [Give(0, LAST), Give(1, BLOCKED)]
    choice = choose(64, [ZERO] * 3, operators, [Take(2, (LAST,))], gives)
    assert choice == BorderChoice((LAST,), ((LAST,),), ((LAST,), (LAST,)))


def test_padded_tails_must_be_zero_where_a_region_reads_them() -> None:
    operators, takes, gives = [BorderOperator((0,), 1)], [Take(1, (BLOCKED,))], [Give(0, BLOCKED)]
    plain = BorderChoice((PLAIN,), ((PLAIN,),), ((PLAIN,),))
    blocked = BorderChoice((BLOCKED,), ((BLOCKED,),), ((BLOCKED,),))
    assert choose(67, [ZERO, ONE], operators, takes, gives) == plain
    assert choose(67, [ZERO, None], operators, takes, gives) == plain
    assert choose(67, [ZERO, np.float32(-0.0)], operators, takes, gives) == plain
    assert choose(67, [ZERO, ZERO], operators, takes, gives) == blocked
    assert choose(64, [ZERO, None], operators, takes, gives) == blocked


def test_padding_that_costs_more_than_the_reorders_is_not_taken() -> None:
    """Sixteen times the elements, through ten operators, for the two reorders of a large image."""
    operators = [BorderOperator((number,), number + 1) for number in range(10)]
    gives, takes = [Give(0, BLOCKED)], [Take(10, (BLOCKED,))]
    tensors = tuple(BorderTensor((1, 1, 512, 512), "float32", ZERO) for _ in range(11))
    wide = BorderGraph(tensors, tuple(operators), tuple(takes), tuple(gives), frozenset())
    assert choose_layouts(wide, reorder_us, rates()).operators == (PLAIN,) * 10


def test_a_result_that_nothing_reads_stays_plain() -> None:
    assert choose(64, [ZERO], [], [], [Give(0, LAST)]) == BorderChoice((), (), ((PLAIN,),))


def test_an_operator_takes_longer_by_its_padding_and_a_little_for_being_physical() -> None:
    """17 channels are 32 in blocks: of two operands and the result as much as is not there."""
    tensors = graph(17, [ZERO, ZERO, ZERO], [], [], [])
    chooser = _Chooser(tensors, reorder_us, rates(gbytes=20.0))
    operator = BorderOperator((0, 1), 2)
    assert chooser._extra(operator, PLAIN) == 0.0
    assert 0 < chooser._extra(operator, LAST) < 0.01
    padding = 3 * 4 * (32 - 17) * 28 * 28 / 20e3
    assert chooser._extra(operator, BLOCKED) == pytest.approx(padding + chooser._extra(operator, LAST))
