"""``Here``: steps are timed with the threads they are asked about, and the process keeps its own number."""

from __future__ import annotations

import pytest

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.execution.threads import with_threads
from tvm_mxplan.tuning import place


def relu() -> ir.Program:
    values = tuple(ir.Value("", (3, 5), "float32", kind, "ab", 0) for kind in ("input", "output"))
    step = ir.Step("", ir.Eltwise("relu", 0.0, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    return ir.Program("", values, (step,))


@pytest.mark.parametrize("asked, used", [(None, 2), (1, 1)])
def test_steps_are_timed_with_the_threads_asked_for(monkeypatch, asked, used):
    seen = []
    timed = place.time_alone
    monkeypatch.setattr(place, "time_alone", lambda *of: (seen.append(library.threads()), timed(*of))[1])
    with with_threads(2):
        value, repeats = place.Here().time(place.Here().backend("onednn"), relu(), asked)
        assert (seen, library.threads()) == ([used], 2)
    assert value > 0
    assert repeats >= 4
