"""oneDNN's planner side of another machine: what is asked there, and what is remembered here."""

from __future__ import annotations

import numpy as np
import pytest
import tvm

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.elsewhere import OneDNNElsewhere
from tvm_mxplan.byoc.onednn.engine import OneDNNEngine
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir


def test_a_planner_of_another_machine() -> None:
    """Equal programs are asked about once, until something is refused; weights may repeat themselves."""
    asked: list[tuple[object, ...]] = []
    values = tuple(ir.Value("", (3, 5), "float32", kind, "ab", 0) for kind in ("input", "output"))
    step = ir.Step("s", ir.Eltwise("relu", 0.0, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    program = ir.Program("p", values, (step,))

    def ask(question: str, *arguments: object) -> str:
        asked.append((question, *arguments))
        return library.description_text(program) if question == "describe" else ""

    planner = OneDNNEngine().planner_elsewhere(ask, {"instruction set": "avx2", "oneDNN": "3.2.0"})
    assert (planner.isa, planner.block, planner.takes_arena) == ("avx2", 8, True)  # type: ignore[attr-defined]
    assert planner.describe(program) == planner.describe(program) == library.describe(program)
    assert asked == [("describe", codec.encode(program))]
    planner.refuse("step", "code", "reason")
    assert asked[1:] == [("refuse", "step", "code", "reason")]
    planner.describe(program)
    assert len(asked) == 3


@pytest.mark.parametrize("repeats", [False, True])
def test_weights_that_repeat_themselves(monkeypatch: pytest.MonkeyPatch, repeats: bool) -> None:
    made: list[tuple[object, ...]] = []
    monkeypatch.setattr(OneDNN, "create_module", lambda _self, *arguments: made.append(arguments))
    planner = OneDNNElsewhere(lambda *_: "", "avx2")
    assert planner.repeats_weights is False
    planner.repeats_weights = repeats
    array = np.random.default_rng(0).random((3, 4097), dtype="float32")
    planner.create_module("s", ir.Program("p", (), ()), [tvm.runtime.tensor(array)])
    ((symbol, program, (sent,)),) = made
    assert (symbol, program) == ("s", ir.Program("p", (), ()))
    expected = np.resize(array.reshape(-1)[:4096], array.shape) if repeats else array
    np.testing.assert_array_equal(sent.numpy(), expected)
