"""The names that options take are those that types allow, each once."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tvm_mxplan.core import policies


@pytest.mark.parametrize(
    ("names", "type_"),
    [
        (policies.CONVOLUTION_ALGORITHMS, policies.ConvolutionAlgorithm),
        (policies.POLICIES, policies.Policy),
        (policies.RULES, policies.Rule),
    ],
)
def test_every_name_of_the_type_can_be_asked_for(names: tuple[str, ...], type_: Any) -> None:
    assert names == get_args(type_)
    assert len(set(names)) == len(names)
