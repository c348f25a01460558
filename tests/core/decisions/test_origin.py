"""``Origin``: how it is told, and what users may call it."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.decisions.origin import Origin, joined, told

A, B, C, D = (Origin(f"/layer/{letter}", "Conv") for letter in "abcd")


def test_a_kind_stands_before_the_name_and_lines_stay_lines():
    assert str(A) == "Conv /layer/a"
    assert str(Origin("encoder.layer.0")) == "encoder.layer.0"
    assert str(Origin("two\nlines", "Relu")) == "Relu two\\nlines"
    assert len(str(Origin("n" * 500, "Relu"))) < 110
    assert str(Origin("n" * 100)) == "n" * 100 and str(Origin("n" * 101)) == "n" * 100 + "..."


@pytest.mark.parametrize(("name", "meant"), [("/layer/a", True), ("a", True), ("layer", False), ("", False)])
def test_the_whole_name_and_its_last_part_are_meant(name, meant):
    assert A.is_called(name) == meant


def test_origins_are_told_once_in_order_and_shortened():
    assert joined([(B, A), (), (A, C)]) == (B, A, C)
    assert told((A, B)) == "Conv /layer/a, Conv /layer/b"
    assert told((A, B, C, D)) == "Conv /layer/a, Conv /layer/b, Conv /layer/c and 1 more"
    assert told(()) == "" and told((Origin(""),)) == ""
    assert told((Origin(""), A, Origin(""))) == "Conv /layer/a", "what has no name is not told"
