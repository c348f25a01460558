"""Costs of a guest beside TVM's kernels: parts of a function, views, regions that would be cut."""

from __future__ import annotations

import pytest
import tvm
from dataflow_text import dataflow

from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.joined import joined, leaders
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.passes.annotations import dispatch_of
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.dispatch.weigh_guests import Worth
from tvm_mxplan.passes.region import NameOperators

LARGE = 'x: R.Tensor((64, 64, 64, 64), "float32")'
SMALL = 'x: R.Tensor((1, 3, 5, 7), "float32")'


def chosen(
    lines: str, params: str = SMALL, first: dict[str, str] | None = None
) -> tuple[dict[str, str], Journal]:
    """The library of each operator, and what was written down."""
    backends = joined([registry.planner("onednn"), registry.planner("host")])
    preference = preference_of(backends, ("onednn", "host", "llvm"), first=first or {})
    journal = Journal()
    worth = Worth(default_rates(), leaders(backends))
    step = DispatchOperators(preference, journal, worth)
    mod = step.transform_module(NameOperators()(dataflow(lines, params)), tvm.transform.PassContext())
    return dict(dispatch_of(mod["main"])), journal


def test_what_would_cut_a_region_is_taken() -> None:
    found, _ = chosen("a = R.nn.relu(x)\nb = R.floor(a)\ny = R.tanh(b)")
    assert found == {"relu_0": "onednn", "floor_0": "host", "tanh_0": "onednn"}


def test_what_stands_behind_a_region_saves_a_kernel() -> None:
    found, _ = chosen("a = R.nn.relu(x)\ny = R.floor(a)")
    assert found["floor_0"] == "host"


def test_what_touches_no_region_is_tvms() -> None:
    found, journal = chosen("y = R.floor(x)")
    assert found == {"floor_0": "llvm"}
    assert "TVM's kernel is estimated at" in journal.refused["relax.floor"]


def test_where_it_computes_long_enough_it_pays_alone() -> None:
    found, _ = chosen("y = R.erf(x)", LARGE)
    assert found == {"erf_0": "host"}


def test_views_are_looked_through() -> None:
    found, _ = chosen(
        "a = R.nn.relu(x)\nb = R.reshape(a, (105,))\nc = R.floor(b)\nd = R.reshape(c, (5, 21))\ny = R.tanh(d)"
    )
    assert found["floor_0"] == "host"
    found, _ = chosen("a = R.reshape(x, (105,))\ny = R.floor(a)")
    assert found["floor_0"] == "llvm"


def test_operators_that_hand_on_tensors_are_weighed_together() -> None:
    found, _ = chosen("a = R.floor(x)\nb = R.erf(a)\ny = R.sign(b)", LARGE)
    assert set(found.values()) == {"host"}
    assert set(chosen("a = R.floor(x)\ny = R.sign(a)", LARGE)[0].values()) == {"llvm"}
    found, journal = chosen("a = R.floor(x)\ny = R.ceil(a)")
    assert set(found.values()) == {"llvm"}
    assert "floor_0, ceil_0" in journal.refused["relax.floor"]


@pytest.mark.parametrize("key", ["floor", "floor_0"])
def test_a_wish_is_not_weighed(key: str) -> None:
    assert chosen("y = R.floor(x)", first={key: "host"})[0] == {"floor_0": "host"}


def test_a_library_that_shares_no_region_is_not_weighed() -> None:
    backends = joined([registry.planner("host")])
    step = DispatchOperators(preference_of(backends), Journal(), Worth(default_rates(), leaders(backends)))
    mod = step.transform_module(
        NameOperators()(dataflow("y = R.floor(x)", SMALL)), tvm.transform.PassContext()
    )
    assert dict(dispatch_of(mod["main"])) == {"floor_0": "host"}
