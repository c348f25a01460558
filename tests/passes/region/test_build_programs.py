"""Programs of regions: which get one, and which go back to TVM with what reason."""

from __future__ import annotations

import numpy as np
import tvm
from region_passes import region_passes
from relax_programs import parse

from tvm_mxplan.byoc.backend import Translation
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.passes.region import BuildPrograms
from tvm_mxplan.passes.region.attached import constants_of, fused_of, program_of, regions

RELU = ir.Eltwise("relu", 0.0, 0.0)


def value(name: str, kind: ir.ValueKind) -> ir.Value:
    return ir.Value(name, (2, 3), "float32", kind, "ab", -1 if kind == "local" else 0)


class Translating(OneDNN):
    """Makes steps of some kinds of each region in turn; None is one that it cannot translate."""

    def __init__(self, *kinds: tuple[ir.Attributes, ...] | None) -> None:
        super().__init__()
        self.kinds = list(kinds)
        self.names: list[str] = []

    def translate(self, region: tvm.relax.Function, name: str, machine: MachineRates) -> Translation:
        kinds = self.kinds[len(self.names)]
        self.names.append(name)
        if kinds is None:
            raise UnsupportedError(f"no way to say {name}")
        values = [value("x", "input"), *(value(f"v{at}", "local") for at in range(len(kinds)))]
        values.append(value("y", "output"))
        steps = tuple(
            ir.Step(f"s{at}", attrs, (ir.Operand("src", at), ir.Operand("dst", at + 1)))
            for at, attrs in enumerate(kinds)
        )
        constants = [np.arange(3, dtype="float32")]
        return Translation(ir.Program(name, tuple(values), steps), constants, {"relu_9": "s0"})


def built(*kinds: tuple[ir.Attributes, ...] | None) -> tuple[dict[str, ir.Program], Journal, Translating]:
    """Programs by region of a module of three."""
    lines = "a = R.nn.relu(x)\nb = R.floor(a)\nc = R.nn.silu(b)\nd = R.floor(c)\ne = R.tanh(d)\nreturn e"
    *passes, _ = region_passes(OneDNN(), named=True)
    mod = tvm.transform.Sequential(passes)(parse(lines, 'x: R.Tensor((2, 3), "float32")'))
    backend, journal = Translating(*kinds), Journal()
    mod = BuildPrograms(backend, journal)(mod)
    found = {gvar.name_hint: function for gvar, function in regions(mod, "mxplan_onednn")}
    for function in found.values():
        np.testing.assert_array_equal(constants_of(function)[0].numpy(), np.arange(3, dtype="float32"))
        assert fused_of(function) == {"relu_9": "s0"}
    return {name: program_of(function) for name, function in found.items()}, journal, backend


def test_every_region_has_its_program() -> None:
    programs, journal, backend = built((RELU,), (ir.Reorder(), RELU), (ir.Slice((0, 0)), RELU))
    assert {name: len(program.steps) for name, program in programs.items()} == dict(
        zip(backend.names, (1, 2, 2), strict=True)
    )
    assert all(program.name == name for name, program in programs.items())
    assert journal.refused == {}


def test_what_cannot_be_translated_goes_back_and_the_others_stay() -> None:
    programs, journal, backend = built((RELU,), None, (RELU,))
    assert sorted(programs) == [backend.names[0], backend.names[2]]
    assert set(journal.refused.values()) == {f"no way to say {backend.names[1]}"}
    assert "silu_0" in journal.refused and "relu_0" not in journal.refused


def test_a_region_goes_back_for_its_own_reason_whatever_stands_in_front() -> None:
    moving = (ir.Reorder(),)
    for kinds in ((moving, None, (RELU,)), (None, moving, (RELU,))):
        programs, journal, backend = built(*kinds)
        assert list(programs) == [backend.names[2]]
        refused = backend.names[kinds.index(None)]
        expected = {"only moves data, which no library does better", f"no way to say {refused}"}
        assert set(journal.refused.values()) == expected


def test_what_only_moves_data_goes_back() -> None:
    """Also a region without any step."""
    programs, journal, backend = built((ir.Reorder(), ir.Slice((0, 0))), (RELU,), ())
    assert list(programs) == [backend.names[1]]
    assert set(journal.refused.values()) == {"only moves data, which no library does better"}
    assert {"relu_0", "tanh_0"} <= set(journal.refused)
