"""``WeighCandidates``: fills in what was not weighed, keeps what was, changes no program."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from blocks import BLOCKED
from costs_by_hand import MODEL
from region_passes import region_passes
from relax_programs import parse
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.decisions.dispatch import Candidate, Weighed
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.layout.layout_decision import LayoutDecision
from tvm_mxplan.core.policies import Policy, Rule
from tvm_mxplan.passes.dispatch import ChooseAlgorithms, WeighCandidates
from tvm_mxplan.passes.layout import InferLayouts
from tvm_mxplan.passes.region.attached import program_of, regions

PARAMETERS = 'x: R.Tensor((1, 64, 28, 28), "float32"), w: R.Tensor((64, 64, 3, 3), "float32")'
BODY = """
with R.dataflow():
    a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
    b = R.nn.max_pool2d(a, pool_size=[2, 2], strides=[2, 2])
    R.output(b)
return b
"""


def decided(policy: Policy, rule: Rule) -> tuple[tvm.IRModule, Journal]:
    backend, journal = OneDNN(), Journal()
    weights = np.random.default_rng(0).standard_normal((64, 64, 3, 3), np.float32)
    passes = [
        relax.transform.BindParams("main", {"w": weights}),
        *region_passes(backend, named=True),
        ChooseAlgorithms(backend, rule, journal=journal),
        InferLayouts(backend, policy, journal=journal),
    ]
    return tvm.transform.Sequential(passes)(parse(BODY, PARAMETERS)), journal


def weigh(policy: Policy, rule: Rule) -> Weighed:
    mod, journal = decided(policy, rule)
    (before,) = (program_of(function) for _, function in regions(mod, "mxplan_onednn"))
    mod = WeighCandidates(OneDNN(), rule, MODEL, journal)(mod)
    (after,) = (program_of(function) for _, function in regions(mod, "mxplan_onednn"))
    assert after == before
    assert journal.weighed.keys() == {"conv2d_0", "max_pool2d_0"}
    return journal.weighed


def chosen(candidates: list[Candidate]) -> Candidate:
    (found,) = (one for one in candidates if not one.out)
    return found


def test_what_was_weighed_is_kept():
    before = decided("cost", "cost")[1].weighed
    weighed = weigh("cost", "cost")
    assert weighed == before
    assert chosen(weighed["conv2d_0"]).algorithm == "winograd_f4"


@pytest.mark.parametrize("policy, layout", [("blocked", BLOCKED), ("channels_last", "acdb")])
def test_layouts_by_a_rule(policy, layout):
    weighed = weigh(policy, "cost")
    for candidates in weighed.values():
        assert chosen(candidates).layouts == (layout, layout)
        assert chosen(candidates).cost_us > 0
        kinds = [(one.implementation, one.layouts) for one in candidates if one.layouts]
        own = (chosen(candidates).implementation, chosen(candidates).layouts)
        assert kinds[0] == own and kinds.count(own) == 1, "what was taken is listed once"
        others = [one for one in candidates if one.layouts and one.out]
        assert {one.layouts for one in others} >= {("abcd", "abcd")}
        for one in others:
            less = one.cost_us is not None and one.cost_us < chosen(candidates).cost_us - 0.1
            assert one.out.endswith(f"option layouts={policy}") or not less


def test_algorithms_by_a_rule():
    weighed = weigh("cost", "direct")
    algorithms = {one.algorithm: one for one in weighed["conv2d_0"] if not one.layouts}
    assert algorithms.keys() == {"winograd_f2", "winograd_f4"}
    assert algorithms["winograd_f4"].out == "costs less than direct alone, but option convolutions=direct"
    assert chosen(weighed["conv2d_0"]).algorithm == "direct"


def test_a_plan_chosen_as_a_whole_says_so():
    mod, journal = decided("channels_last", "direct")
    ((name, decision),) = journal.layouts.items()
    replayed = Journal(layouts={name: LayoutDecision("cost", decision.seconds, replayed=True)})
    WeighCandidates(OneDNN(), "cost", MODEL, replayed)(mod)
    algorithms = {one.algorithm: one.out for one in replayed.weighed["conv2d_0"] if not one.layouts}
    assert algorithms["winograd_f4"] == "costs less than direct alone, but the plan was chosen as a whole"


def test_others_are_held_against_the_algorithm_that_a_kept_plan_has():
    """Winograd in squares of two costs less than direct, and more than in squares of four."""
    mod, journal = decided("cost", "cost")
    ((name, decision),) = journal.layouts.items()
    replayed = Journal(layouts={name: LayoutDecision("cost", decision.seconds, replayed=True)})
    WeighCandidates(OneDNN(), "cost", MODEL, replayed)(mod)
    others = {one.algorithm: one for one in replayed.weighed["conv2d_0"] if not one.layouts}
    assert others["winograd_f2"].cost_us < others["direct"].cost_us
    assert {one.out for one in others.values()} == {"costs more than winograd_f4"}
