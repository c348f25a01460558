"""The planner's stand-in in the place of cuDNN's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tvm_mxplan.byoc.cudnn import engine, library
from tvm_mxplan.byoc.cudnn.plans import plans
from tvm_mxplan.byoc.cudnn.plans.store import PlanStore

sys.path.append(str(Path(__file__).resolve().parent))
from cudnn_stand_in import StandIn


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn()
    monkeypatch.setattr(plans, "STORE", PlanStore())
    monkeypatch.setattr(engine, "STORE", plans.STORE)
    monkeypatch.setattr(library, "plan", stand_in.plan)
    monkeypatch.setattr(library, "why_not", lambda: "")
    monkeypatch.setattr(library, "cudnn_version", lambda: 91900)
    return stand_in
