"""Costs of a guest beside TVM's kernels: parts of a function, views, regions that would be cut."""

from __future__ import annotations

import math
from typing import Any

import pytest
import tvm
from dataflow_text import dataflow

from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.joined import joined, leaders
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.passes.annotations import dispatch_of
from tvm_mxplan.passes.dispatch import DispatchOperators, weigh_guests
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.dispatch.weigh_guests import Worth, _Part, _reason
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


def test_branches_that_meet_are_one_part() -> None:
    """Groups of operators that join are weighed once, as one."""
    found, journal = chosen("a = R.floor(x)\nb = R.ceil(x)\nc = R.sign(b)\ny = R.less(a, c)")
    assert set(found.values()) == {"llvm"}
    assert len(journal.refused) == 4 and len(set(journal.refused.values())) == 1
    (reason,) = set(journal.refused.values())
    assert all(name in reason for name in ("floor_0", "ceil_0", "sign_0", "less_0"))


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


FIRST, SECOND = tvm.ir.GlobalVar("first"), tvm.ir.GlobalVar("second")


def told(theirs: list[float | None], ours: list[float], *, behind: bool = False, before: bool = False) -> str:
    """The reason for leaving operators to TVM that cost so many microseconds there and here."""
    composites = [FIRST, SECOND][: len(ours)]
    names = [f"floor_{at}" for at in range(len(theirs))]
    costs = dict(zip(composites, ours, strict=True))
    times = {name: us for name, us in zip(names, theirs, strict=True) if us != -1}
    part = _Part(composites, names, behind, before)
    return _reason(part, costs, times, 10.0)  # type: ignore[arg-type]


def test_beside_a_region_the_library_has_to_cost_a_quarter_less() -> None:
    for side in ({"behind": True}, {"before": True}):
        assert told([5.0], [4.0], **side) == ""
        assert "estimated at 5.0 us, the library's at 4.1 us" in told([5.0], [4.1], **side)


def test_between_two_a_region_is_saved() -> None:
    assert told([1.0], [11.0], behind=True, before=True) == ""
    reason = told([1.0], [11.1], behind=True, before=True)
    assert reason == "TVM's kernel is estimated at 11.0 us, the library's at 11.1 us"


def test_alone_a_region_is_paid() -> None:
    assert told([25.0], [10.0]) == ""
    assert told([24.9], [10.0]) == "TVM's kernel is estimated at 24.9 us, the library's at 20.0 us"


def test_costs_of_a_part_are_sums() -> None:
    assert told([3.0, 2.0], [2.0, 2.0], behind=True) == ""
    reason = told([3.0, 1.0], [2.0, 2.0], behind=True)
    assert reason == "TVM's kernels for floor_0, floor_1 are estimated at 4.0 us, the library's at 4.0 us"


def test_of_what_is_not_known_nothing_is_said() -> None:
    assert told([None], [100.0]) == told([1.0, None], [50.0, 50.0]) == told([-1], [100.0]) == ""
    assert told([1.0], [math.inf]) == ""


def test_views_alone_are_left_but_in_the_middle_of_a_region() -> None:
    assert told([0.0], []) != "" and told([0.0], [], behind=True) != "" and told([0.0], [], before=True) != ""
    assert told([0.0], [], behind=True, before=True) == ""


def test_images_that_tvm_would_have_made_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resize between convolutions, for whose kernel of TVM's images are converted before and behind."""
    turned = []

    def reason(*args: Any) -> str:
        turned.append(args[-1])
        return _reason(*args)

    monkeypatch.setattr(weigh_guests, "_reason", reason)
    params = 'x: R.Tensor((1, 64, 56, 56), "float32"), w: R.Tensor((64, 64, 3, 3), "float32")'
    resize = (
        'R.image.resize2d(a, (112, 112), layout="NCHW", method="linear", coordinate_transformation_mode="{}")'
    )
    lines = (
        "a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])\n"
        f"b = {resize.format('align_corners')}\ny = R.nn.conv2d(b, w, padding=[1, 1, 1, 1])"
    )
    assert chosen(lines, params)[0]["resize2d_0"] == "host"
    assert turned == [default_rates().copying_us(4 * 64 * (56 * 56 + 112 * 112))]
    turned.clear()
    chosen("a = R.nn.relu(x)\nb = R.floor(a)\ny = R.tanh(b)")
    assert turned == [0.0]


def test_permutations_of_more_axes_than_the_leader_has_do_not_cut_its_region() -> None:
    params = 'x: R.Tensor((2, 4, 2, 3, 2, 5, 2, 7), "float32")'
    lines = (
        "a = R.reshape(x, (8, 6, 10, 14))\nb = R.nn.relu(a)\nc = R.reshape(b, (2, 4, 2, 3, 2, 5, 2, 7))\n"
        "d = R.permute_dims(c, [0, 7, 2, 4, 6, 1, 3, 5])\ne = R.reshape(d, (14, 8, 60))\ny = R.tanh(e)"
    )
    found, _ = chosen(lines, params)
    assert found["permute_dims_0"] == "host"
    assert found["relu_0"] == found["tanh_0"] == "onednn"


@pytest.mark.parametrize(
    "view",
    [
        "R.reshape({}, (3, 5, 7))",
        "R.squeeze({}, [0])",
        "R.expand_dims({}, 0)",
        "R.flatten({})",
        "R.permute_dims({}, [0, 2, 1, 3])",
    ],
)
def test_each_view_is_looked_through_on_both_sides(view: str) -> None:
    lines = f"a = R.nn.relu(x)\nb = {view.format('a')}\ny = R.floor(b)"
    assert chosen(lines)[0]["floor_0"] == "host", "behind the library's"
    lines = f"a = R.floor(x)\nb = {view.format('a')}\ny = R.nn.relu(b)"
    assert chosen(lines)[0]["floor_0"] == "host", "in front of the library's"
    lines = f"a = R.floor(x)\nb = {view.format('a')}\ny = R.ceil(b)"
    found, journal = chosen(lines)
    assert (
        set(found.values()) - {"onednn"} <= {"llvm"} and "floor_0, ceil_0" in journal.refused["relax.floor"]
    )
