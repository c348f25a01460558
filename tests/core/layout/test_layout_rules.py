"""Rules that a library does not state: every form for images, no kinds, nothing on the way."""

from __future__ import annotations

from typing import get_args

from tvm_mxplan.core.layout.layout_rules import Form, LayoutRules


def test_a_library_that_states_nothing() -> None:
    rules = LayoutRules()
    assert rules == LayoutRules(1, ("last", "blocked", "plain"), (), (), (), (), (), False, False)
    assert set(rules.forms) == set(get_args(Form))
