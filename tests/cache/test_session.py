"""Decisions that one process made and those that it loaded are kept apart, handed on, and bounded."""

from __future__ import annotations

from tvm_mxplan.cache.session import CAPACITY, Session
from tvm_mxplan.core.decisions.choices import Choices, Key


def keys(*numbers: int) -> dict[Key, bytes]:
    return {Key("layouts", str(number)): bytes([number % 251]) for number in numbers}


def compiled(*numbers: int, symbolic: int = 0) -> Choices:
    choices = Choices()
    choices.made.update(keys(*numbers))
    choices.symbolic = symbolic
    return choices


def test_only_what_was_loaded_is_known_to_compilations():
    session = Session()
    session.keep(compiled(1))
    assert not session.choices({}).has_known
    session.add_loaded(keys(2), "file")
    assert session.choices({}).has_known
    assert (session.source, session.made()) == ("file", keys(1))


def test_a_compilation_does_not_see_what_is_loaded_later():
    session = Session()
    before = session.choices({})
    session.add_loaded(keys(2), "file")
    assert not before.has_known


def test_symbolic_regions_are_counted_over_compilations():
    session = Session()
    session.keep(compiled(1, symbolic=2))
    session.keep(compiled(2, symbolic=3))
    assert (session.symbolic, session.made()) == (5, keys(1, 2))


def test_the_oldest_go_first_and_use_keeps_young():
    session = Session()
    session.keep(compiled(*range(CAPACITY)))
    assert len(session.made()) == CAPACITY
    session.keep(compiled(0))
    session.keep(compiled(CAPACITY, CAPACITY + 1))
    left = {int(key.digest) for key in session.made()}
    assert len(left) == CAPACITY
    assert left == ({0, CAPACITY, CAPACITY + 1} | set(range(3, CAPACITY)))


def test_what_is_handed_out_is_a_copy():
    session = Session()
    session.keep(compiled(1))
    session.made().clear()
    assert session.made() == keys(1)
