"""Patterns that a module could match: by kind of pattern, and by what is left out of a module."""

from __future__ import annotations

import pytest
import tvm
from relax_programs import parse
from tvm.relax.dpl import (
    DFPattern,
    TuplePattern,
    is_const,
    is_op,
    is_tuple_get_item,
    wildcard,
)
from tvm.relax.dpl.pattern import TypePattern, UnorderedTuplePattern

from tvm_mxplan.passes.dispatch.pattern_operators import may_match, operators_of

X = 'x: R.Tensor((4, 6), "float32")'
ANY = wildcard()


def exp() -> DFPattern:
    return is_op("relax.exp")(ANY)


def add() -> DFPattern:
    return is_op("relax.add")(ANY, ANY)


NEEDS: list[tuple[str, DFPattern, list[set[str]]]] = [
    ("a call", exp(), [{"relax.exp"}]),
    ("a call in a call", is_op("relax.add")(ANY, exp()), [{"relax.exp", "relax.add"}]),
    ("with attributes", is_op("relax.sum")(exp()).has_attr({"axis": [1]}), [{"relax.exp", "relax.sum"}]),
    ("of a type", exp().has_dtype("float32"), [{"relax.exp"}]),
    ("of a shape", exp().has_shape((4, 6)), [{"relax.exp"}]),
    ("of a Relax type", TypePattern(exp(), tvm.relax.TensorType((4, 6), "float32")), [{"relax.exp"}]),
    ("either", exp() | add(), [{"relax.exp"}, {"relax.add"}]),
    ("both", exp() & add(), [{"relax.exp", "relax.add"}]),
    ("a tuple", TuplePattern([exp(), ANY, add()]), [{"relax.exp", "relax.add"}]),
    ("a tuple in any order", UnorderedTuplePattern([exp(), add()]), [{"relax.exp", "relax.add"}]),
    ("a field", is_tuple_get_item(exp(), 1), [{"relax.exp"}]),
]


@pytest.mark.parametrize(("pattern", "ways"), [case[1:] for case in NEEDS], ids=[case[0] for case in NEEDS])
def test_a_pattern_needs_its_operators(pattern: DFPattern, ways: list[set[str]]) -> None:
    """All those of one way; one less of any is not enough."""
    for way in ways:
        assert may_match(pattern, way)
        assert may_match(pattern, way | {"relax.tanh"})
    every = set().union(*ways)
    for gone in every:
        left = every - {gone}
        assert may_match(pattern, left) == any(way <= left for way in ways)
    assert not may_match(pattern, ())


@pytest.mark.parametrize("pattern", [ANY, is_const(), wildcard().has_dtype("float32"), wildcard() | exp()])
def test_what_needs_no_operator_may_always_match(pattern: DFPattern) -> None:
    assert may_match(pattern, ())


def test_operators_of_all_functions_and_depths() -> None:
    mod = parse(
        "if c:\n    r = R.exp(x)\nelse:\n    r = R.add(x, x)\nreturn R.tanh(r)",
        X + ', c: R.Tensor((), "bool")',
    )
    mod[tvm.ir.GlobalVar("other")] = parse("return R.sin(x)", X)["main"].with_attr("global_symbol", "other")
    assert operators_of(mod) == {"relax.exp", "relax.add", "relax.tanh", "relax.sin"}
    kernel = tvm.tirx.PrimFunc([], tvm.tirx.Evaluate(0))
    assert operators_of(tvm.IRModule({"f": kernel})) == frozenset()
