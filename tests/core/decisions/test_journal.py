"""``Journal``: what stands where several passes, or several turns, tell of one thing."""

from __future__ import annotations

from tvm_mxplan.core.allocation import Plan
from tvm_mxplan.core.decisions.dispatch import Candidate, DispatchDecision
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.decisions.precision import PrecisionDecision
from tvm_mxplan.core.layout.layout_decision import LayoutDecision

DIRECT, WINOGRAD, LAST = (Candidate(algorithm=name) for name in ("direct", "winograd_f4", "winograd_f2"))


def test_candidates_take_the_place_of_others_or_stand_behind_them() -> None:
    journal = Journal()
    journal.weigh({"conv": [DIRECT]})
    journal.weigh_more({"conv": [WINOGRAD], "pool": [LAST]})
    assert journal.weighed == {"conv": [DIRECT, WINOGRAD], "pool": [LAST]}
    journal.weigh({"conv": [LAST]})
    assert journal.weighed == {"conv": [LAST], "pool": [LAST]}


def test_a_turn_forgets_what_earlier_turns_weighed_and_nothing_else() -> None:
    journal = Journal()
    journal.weigh({"conv": [DIRECT]})  # by a plan that was compared as a whole
    for _ in range(3):
        journal.begin_turn()
        assert journal.weighed == {"conv": [DIRECT]}
        journal.weigh_more({"conv": [WINOGRAD]})
    journal.refuse({"relax.exp": "why"})
    journal.begin_turn()
    assert (journal.weighed, journal.refused) == ({"conv": [DIRECT]}, {"relax.exp": "why"})


def test_the_last_reason_stands() -> None:
    journal = Journal()
    journal.refuse({"relax.exp": "first", "relax.abs": "other"})
    journal.refuse({"relax.exp": "second"})
    assert journal.refused == {"relax.exp": "second", "relax.abs": "other"}


def test_what_is_noted_stands_by_its_name() -> None:
    journal, plan, decision = Journal(), Plan((0,)), LayoutDecision("cost", 0.5)
    assert (journal.plans, journal.layouts, journal.trials, journal.dispatched) == ({}, {}, {}, {})
    journal.place("region_0", plan)
    journal.lay_out("region_0", decision)
    assert journal.precisions == {}
    journal.assign_precision("region_0", PrecisionDecision("bf16"))
    assert journal.precisions == {"region_0": PrecisionDecision("bf16")}
    operator = DispatchDecision("relu_0", "relu", (DIRECT,))
    journal.dispatch(operator)
    assert (journal.plans, journal.layouts) == ({"region_0": plan}, {"region_0": decision})
    assert journal.dispatched == {"relu_0": operator}
