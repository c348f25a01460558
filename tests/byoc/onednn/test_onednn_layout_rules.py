"""The layouts that oneDNN's steps are asked for, kind by kind."""

from __future__ import annotations

import pytest

from tvm_mxplan.byoc.onednn.layout_rules import layout_rules
from tvm_mxplan.core.program import program as ir

RULES = layout_rules(16)
TABLE = {
    "images": {
        "convolution", "deconvolution", "pooling", "pooling_backward", "lrn", "resampling", "shuffle",
        "batch_normalization", "batch_normalization_training", "batch_normalization_backward",
    },
    "follows": {"eltwise", "binary", "concat", "prelu", "pad", "slice", "reduction", "softmax"},
    "sources": {"inner_product"},
    "mixed": {"convolution"},
}  # fmt: skip


@pytest.mark.parametrize("table", TABLE)
def test_kinds_in_each_table(table: str) -> None:
    assert TABLE[table] <= {ir.KIND_OF[kind] for kind in getattr(RULES, table)}


def test_no_kind_is_in_two_of_them() -> None:
    assert not set(RULES.images) & set(RULES.follows)
    assert not {*RULES.images, *RULES.follows} & set(RULES.sources)
    assert set(RULES.mixed) <= set(RULES.images)


def test_conversions_are_work_that_may_be_saved() -> None:
    assert (RULES.block, RULES.casts, RULES.copies) == (16, True, True)
    assert RULES.forms == ("last", "blocked", "plain")
    assert layout_rules(8).block == 8
