"""The table of phases: slices of it, what it shows of itself, and what a phase hands on as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tvm

import tvm_mxplan
from tvm_mxplan import InvalidInputError
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.options import Options
from tvm_mxplan.passes.region.attached import program_of, regions
from tvm_mxplan.pipeline import PHASES, Given, compilation
from tvm_mxplan.report.recorder import Recorder
from tvm_mxplan.testing import zoo

TARGET = tvm.target.Target("llvm")
NAMES = [phase.name for phase in PHASES]
ARCHITECTURE = Path(__file__).resolve().parent.parent / "docs" / "architecture.md"


@pytest.fixture(scope="module")
def imported() -> tvm.IRModule:
    return import_model(zoo.load(zoo.TINY), None, "")


def ran(mod: tvm.IRModule, *ends: tuple[str, str]) -> tuple[tvm.IRModule, Recorder]:
    """The module behind slices of the table, one after the other."""
    made = compilation([OneDNN()], Options(), TARGET, Given(Recorder()))
    with TARGET:
        for first, last in ends:
            mod = made.run(mod, first, last)
    return mod, made.recorder


@pytest.mark.parametrize("cut", ["canonicalize", "partition", "programs", "layouts", "memory"])
def test_two_slices_do_what_the_whole_does(imported: tvm.IRModule, cut: str) -> None:
    whole, expected = ran(imported, ("", "memory"))
    if cut == "memory":
        parts, recorder = ran(imported, ("", cut))
    else:
        behind = NAMES[NAMES.index(cut) + 1]
        parts, recorder = ran(imported, ("", cut), (behind, "memory"))
    programs = [program_of(function) for _, function in regions(parts, "mxplan_onednn")]
    assert programs and programs[0].arena_bytes > 0
    assert programs == [program_of(function) for _, function in regions(whole, "mxplan_onednn")]
    assert recorder.journal.dispatched == expected.journal.dispatched
    tvm.ir.assert_structural_equal(parts, whole)


def test_a_slice_needs_names_of_the_table(imported: tvm.IRModule) -> None:
    with pytest.raises(ValueError, match="winograd"):
        ran(imported, ("winograd", ""))


def test_the_table_in_the_docs_is_the_table() -> None:
    text = ARCHITECTURE.read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \| ([^|]+) \|", text, re.MULTILINE)
    assert rows == [(phase.name, phase.takes, phase.hands_on) for phase in PHASES]


def test_a_phase_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"dump_after": "dispatch,layouts", "cache": "disabled"}
    ex = tvm_mxplan.compile(zoo.load(zoo.TINY), options=options)
    assert ex.report.regions
    shown = re.split(r'# mxplan: what phase "(.+)" hands on', capsys.readouterr().out)
    assert shown[1::2] == ["dispatch", "layouts"]
    dispatched, laid_out = shown[2::2]
    assert "mxplan.dispatch" in dispatched and "program mxplan_onednn_0" not in dispatched
    (step,) = re.findall(r"^  conv2d_0 = convolution\(.*$", laid_out, re.MULTILINE)
    planned = next(step for step in ex.report.regions[0].steps if step.name == "conv2d_0")
    assert f"in {planned.implementation}" in step


def test_phases_are_written_to_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"dump_after": ["all"], "dump_folder": tmp_path, "cache": "disabled"}
    tvm_mxplan.compile(zoo.load(zoo.TINY), options=options)
    assert {path.stem for path in tmp_path.iterdir()} == set(NAMES)
    assert "R.call_dps_packed" in (tmp_path / "emit.txt").read_text()
    planned = (tmp_path / "memory.txt").read_text()
    assert re.search(r"^program .*, arena [1-9]\d* bytes", planned, re.MULTILINE)
    assert capsys.readouterr().out == ""


def test_a_cached_compilation_is_made_again_to_be_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path))
    model = zoo.load(zoo.TINY)
    for _ in range(2):
        tvm_mxplan.compile(model, options={"cache": "on_compile"})
    capsys.readouterr()
    ex = tvm_mxplan.compile(model, options={"cache": "on_compile", "dump_after": "name"})
    assert ex.report.cache.outcome == "miss" and "dump_after" in ex.report.cache.reason
    assert capsys.readouterr().out.startswith('# mxplan: what phase "name" hands on')


@pytest.mark.parametrize(
    "options, words",
    [
        ({"dump_after": "laouts"}, ["dump_after", "laouts", "layouts", "kernels", "all"]),
        ({"dump_after": 3}, ["dump_after", "3", "layouts,memory"]),
        ({"dump_folder": "somewhere"}, ["dump_folder", "dump_after"]),
        ({"dump_after": "all", "dump_folder": 3}, ["dump_folder", "3"]),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InvalidInputError) as error:
        tvm_mxplan.compile(zoo.load(zoo.TINY), options=options)
    assert all(word in str(error.value) for word in words), error.value
