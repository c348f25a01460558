"""Models made ready for sizes: each combination once, nothing made by the calls that follow."""

from __future__ import annotations

import json

import pytest
from handed_on import numbers

import tvm_mxplan
from tvm_mxplan.byoc.region_module import modules_under
from tvm_mxplan.core.program.dims import LARGEST_EXTENT
from tvm_mxplan.testing.mlp import mlp


@pytest.fixture
def ex():
    ex = tvm_mxplan.compile(mlp([8, 16, 4], "N"))
    assert ex.report.regions
    return ex


def specializations(ex) -> tuple[list[int], int]:
    """The batches that the model's one region has specialisations for, and how many others have gone."""
    (region,) = (node for node in modules_under(ex.module.mod) if node.kind == "mxplan_onednn")
    stats = json.loads(str(region["mxplan.stats"]()))
    return sorted(made["symbols"]["N"] for made in stats["specializations"]), stats["evictions"]


def test_calls_at_prepared_sizes_make_nothing(ex):
    ex.prepare(N=[1, 8, 3, 8])
    assert specializations(ex) == ([1, 3, 8], 0)
    for batch in (8, 1, 3):
        assert ex.run(numbers(batch, 8))[0].shape == (batch, 4)
    assert specializations(ex) == ([1, 3, 8], 0)
    assert ex._caller().counters().looked_at == 3


def test_as_many_are_kept_as_were_prepared_at_once(ex):
    ex.prepare(N=range(1, 21))
    assert specializations(ex) == (list(range(1, 21)), 0)
    ex.prepare(N=30)
    assert specializations(ex) == ([*range(2, 21), 30], 1)


def test_sixteen_are_kept_otherwise(ex):
    for batch in range(1, 19):
        ex(numbers(batch, 8))
    assert specializations(ex) == (list(range(3, 19)), 2)


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"M": 3}, "no dimension 'M'; the named dimensions are N"),
        ({}, "dimension 'N' has no sizes; the named dimensions are N"),
        ({"N": [2, 0]}, "dimension 'N' cannot be 0; expected 1 or more"),
        ({"N": 2.0}, "dimension 'N' cannot be 2.0"),
    ],
)
def test_mistakes_are_named_before_anything_runs(ex, sizes, text):
    with pytest.raises(tvm_mxplan.InvalidInputError) as error:
        ex.prepare(**sizes)
    assert text in str(error.value)
    assert specializations(ex) == ([], 0)


def test_a_size_that_is_too_large_is_told_what_is_the_largest(ex):
    for size, wanted in ((10**12, f"expected 1 to {LARGEST_EXTENT}"), (0, "expected 1 or more")):
        with pytest.raises(tvm_mxplan.InvalidInputError, match=wanted):
            ex.prepare(N=size)
