"""The registry by preference: who is asked first for an operator, who not at all, and why."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tvm import relax

from tvm_mxplan.errors import InvalidInputError
from tvm_mxplan.passes.dispatch.implementations import (
    Preference,
    Trial,
    is_operator,
    kind_of,
    preference_of,
    tvm_refusal,
)
from tvm_mxplan.passes.relax_types import with_operator_name

X = relax.Var("x", relax.TensorType((2, 3, 8, 8), "float32"))
W = relax.Var("w", relax.TensorType((4, 3, 3, 3), "float32"))
CONV = with_operator_name(relax.op.nn.conv2d(X, W), "conv2d_3")
RELU = with_operator_name(relax.op.nn.relu(X), "relu_0")


def library(name: str) -> SimpleNamespace:
    return SimpleNamespace(library=name)


def preference(*order: str, **options) -> Preference:
    return preference_of([library("one"), library("two")], order, **options)  # type: ignore[list-item]


def names(implementations) -> list[str]:
    return [one.name for one in implementations]


def test_the_order_of_the_target_comes_first_and_tvm_last() -> None:
    assert names(preference().implementations) == ["one", "two", "llvm"]
    assert names(preference("two").implementations) == ["two", "one", "llvm"]
    assert names(preference("llvm", "two").implementations) == ["llvm", "two", "one"]


def test_who_is_absent_is_known_and_not_asked() -> None:
    found = preference("three", absent={"three": "not in this build"})
    assert names(found.implementations) == ["three", "one", "two", "llvm"]
    assert names(found.present) == ["one", "two", "llvm"]
    assert names(found.libraries) == ["one", "two"]
    assert names(found.order(CONV)) == ["one", "two", "llvm"]
    assert found.implementations[0].absent == "not in this build"


def test_a_wish_by_name_comes_before_one_by_kind() -> None:
    found = preference(first={"conv2d": "two", "conv2d_3": "llvm", "relu": "two"})
    assert names(found.order(CONV)) == ["llvm", "one", "two"]
    assert found.wish(CONV) == ("llvm", "conv2d_3")
    assert names(found.order(with_operator_name(CONV, "conv2d_4"))) == ["two", "one", "llvm"]
    assert names(found.order(RELU)) == ["two", "one", "llvm"]
    assert found.wish(relax.op.exp(X)) == ("", "")


def test_what_is_off_is_tvms() -> None:
    found = preference(off={"conv2d_3"}, first={"conv2d": "two"})
    assert names(found.order(CONV)) == ["llvm"]
    assert found.why(CONV, "llvm") == "switched off by option: conv2d_3"
    assert names(found.order(RELU)) == ["one", "two", "llvm"]
    assert names(found.order(relax.op.nn.conv2d(X, W))) == ["two", "one", "llvm"]


@pytest.mark.parametrize(
    ("taken", "expected"), [(True, ["llvm", "one", "two"]), (False, ["one", "two", "llvm"])]
)
def test_trials_that_were_taken_count(taken: bool, expected: list[str]) -> None:
    trial = Trial("llvm", ("conv2d", "relu"), 0.8765, taken)
    found = preference(trials={"conv2d": trial})
    assert names(found.order(CONV)) == expected
    assert names(found.order(RELU)) == ["one", "two", "llvm"]
    why = "whole plan with conv2d, relu in llvm measured 0.876 times as long"
    assert found.why(CONV, expected[0]) == why
    assert found.why(RELU, "one") == "after one in the order of preference"


def test_a_users_wish_comes_before_a_trial() -> None:
    found = preference(trials={"conv2d": Trial("llvm", ("conv2d",), 0.5, True)}, first={"conv2d": "two"})
    assert names(found.order(CONV)) == ["two", "one", "llvm"]
    assert found.why(CONV, "two") == "option prefer: conv2d=two"
    assert found.why(CONV, "one") == "after one in the order of preference"


def test_a_wish_for_nobody_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match=r"option prefer: conv2d=three: .* it has one, two, llvm"):
        preference(first={"conv2d": "three"})
    assert preference(first={"conv2d": "three"}, absent={"three": "gone"}).wish(CONV) == ("three", "conv2d")


def test_kinds_of_operators() -> None:
    assert (kind_of(CONV), kind_of(relax.op.exp(X))) == ("conv2d", "exp")
    assert is_operator(CONV) and not is_operator(X)
    assert not is_operator(relax.Call(relax.GlobalVar("f"), [X]))
    assert not is_operator(relax.Call(relax.ExternFunc("f"), [X]))
    assert tvm_refusal(CONV) == ""


def test_nothing_comes_first_unless_it_is_said() -> None:
    preference = Preference(())
    assert dict(preference.first) == {} and not preference.off
