"""Equations of Einstein sums: what they are read as, and what they are not."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.einsum import Pair, next_pair, pair_of, parse
from tvm_mxplan.core.program.dims import Symbol


@pytest.mark.parametrize(
    ("text", "shapes", "written_out"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], "ij,jk->ik"),
        (" ij , jk ", [(2, 3), (3, 4)], "ij,jk->ik"),
        ("ba,ac", [(2, 3), (3, 4)], "ba,ac->bc"),
        ("cb,ba", [(2, 3), (3, 4)], "cb,ba->ac"),
        ("...ij,...jk->...ik", [(5, 6, 2, 3), (5, 6, 3, 4)], "abij,abjk->abik"),
        ("i...->...", [(2, 5, 6)], "iab->ab"),
        ("...a,...b", [(5, 2), (5, 3)], "ca,cb->cab"),
        ("ij->", [(2, 3)], "ij->"),
    ],
)
def test_equations_are_written_out(text, shapes, written_out):
    equation = parse(text, shapes)
    assert equation is not None and equation.text == written_out


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ii->i", [(3, 3)]),  # a diagonal
        ("ij,jk->ik", [(2, 1), (3, 4)]),  # an axis that is broadcast
        ("...i,...i->...", [(1, 3), (5, 3)]),
        ("ij->ik", [(2, 3)]),
        ("ij->iij", [(2, 3)]),
        ("ijk->i", [(2, 3)]),
        ("ij->i", [(2, 3, 4)]),
        ("ij,jk->ik", [(2, 3)]),
        ("i1->i", [(2, 3)]),
    ],
)
def test_others_are_none(text, shapes):
    assert parse(text, shapes) is None


def test_extents_may_vary():
    n = Symbol("n")
    equation = parse("bi,bj->ij", [(n, 3), (n, 4)])
    assert equation is not None and equation.extents == {"b": n, "i": 3, "j": 4}
    assert parse("bi,bj->ij", [(n, 3), (7, 4)]) is None


def test_labels_of_a_pair():
    found = pair_of(tuple("ijkl"), tuple("bil"), set("bijk"))
    assert found == Pair(("i",), ("j", "k"), ("b",), ("l",)) and found.result == tuple("ijkb")


def test_the_smallest_product_comes_first():
    operands, extents = [tuple("ij"), tuple("jk"), tuple("kl")], {"i": 100, "j": 100, "k": 2, "l": 3}
    assert next_pair(operands, tuple("il"), extents) in ((0, 1), (1, 2))
    assert next_pair([tuple("i"), tuple("j"), tuple("ij")], (), extents) != (0, 1)
