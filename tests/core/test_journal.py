"""``Journal``: what stands where several passes, or several turns, tell of one thing."""

from __future__ import annotations

from tvm_mxplan.core.dispatch import Candidate
from tvm_mxplan.core.journal import Journal

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
