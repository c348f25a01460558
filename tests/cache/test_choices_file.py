"""``save_cache`` and ``load_cache``: what one process chose, another one replays."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from blocks import BLOCKED_NAME
from spoilt_files import UNUSABLE, check_each_fact_is_needed, check_unwritable_is_a_warning, rewrite

import tvm_mxplan
from tvm_mxplan import InvalidInputError, UnsupportedError, load_cache, save_cache
from tvm_mxplan.cache import choices_file, compile_cache
from tvm_mxplan.cache.safe_file import open_container
from tvm_mxplan.cache.session import Session
from tvm_mxplan.core.decisions.choices import Choices, Key
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.dispatch import choose_algorithms
from tvm_mxplan.passes.layout import infer_layouts
from tvm_mxplan.passes.layout.measure import StepTimer
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.testing import zoo

X = zoo.random_images((1, 3, 32, 32))


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch):
    """A session as of a new process; calling it begins another one."""

    def begin() -> None:
        session = Session()
        monkeypatch.setattr(choices_file, "SESSION", session)
        monkeypatch.setattr(compile_cache, "SESSION", session)

    begin()
    return begin


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of regions whose layouts were chosen, not replayed."""
    return watched(monkeypatch, infer_layouts, "infer_layouts")


def watched(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[str]:
    """Names of the programs for which a function is called from now on."""
    names: list[str] = []
    real = getattr(module, name)

    def note(program, *arguments, **keywords):
        names.append(program.name)
        return real(program, *arguments, **keywords)

    monkeypatch.setattr(module, name, note)
    return names


def programs_of(ex: tvm_mxplan.Executable) -> list[bytes]:
    """All that the runtime does in regions: algorithms, layouts, implementations, memory."""
    programs = [codec.encode(program) for program in decoded_programs(ex.module)]
    assert programs
    return programs


@pytest.fixture
def saved(tiny, tmp_path, fresh) -> Path:
    """A file with the choices for the one region of the tiny model; the session is new again."""
    path = tmp_path / "choices.bin"
    assert len(tvm_mxplan.compile(tiny).report.regions) == 1
    assert save_cache(path, "mkldnn") == 1
    assert path.stat().st_mode & 0o777 == 0o600
    fresh()
    return path


def test_there_has_to_be_something_to_save(tmp_path, monkeypatch):
    with pytest.raises(tvm_mxplan.InvalidInputError, match="nothing to save; compile a model first"):
        save_cache(tmp_path / "none.bin", "mkldnn")
    monkeypatch.setattr(choices_file.SESSION, "symbolic", 1)
    with pytest.raises(tvm_mxplan.UnsupportedError, match="choices are kept for static shapes only"):
        save_cache(tmp_path / "none.bin", "mkldnn")


def test_choices_are_replayed(tiny, saved, decided):
    cold = tvm_mxplan.compile(tiny, options={"cache": "disabled"})
    assert (decided, cold.report.cache.outcome) == (["mxplan_onednn_0"], "off")
    assert load_cache(saved, "mkldnn") == 1
    warm = tvm_mxplan.compile(tiny)
    assert decided == ["mxplan_onednn_0"]
    assert str(warm.report.cache) == "cache: hit; choices for 1 of 1 region(s) replayed; choices.bin"
    assert [region.layouts.replayed for region in warm.report.regions] == [True]
    assert [region.layouts.replayed for region in cold.report.regions] == [False]
    assert "layouts by policy cost replayed in" in str(warm.report)
    assert programs_of(warm) == programs_of(cold)
    np.testing.assert_array_equal(warm(X)[0].numpy(), cold(X)[0].numpy())


def test_replayed_choices_are_explained_with_their_costs(tiny, saved):
    cold = tvm_mxplan.compile(tiny, options={"cache": "disabled"}).report.dispatch
    load_cache(saved, "mkldnn")
    warm = tvm_mxplan.compile(tiny).report
    assert warm.regions[0].layouts.replayed
    assert [decision.chosen for decision in warm.dispatch] == [decision.chosen for decision in cold]
    for decision, again in zip(cold, warm.dispatch, strict=True):
        assert {(one.cost_us, one.algorithm, one.layouts) for one in again.candidates} == {
            (one.cost_us, one.algorithm, one.layouts) for one in decision.candidates
        }
    assert sum(one.cost_us is not None for decision in cold for one in decision.candidates) > 20


@pytest.mark.slow
def test_measured_choices_are_those_of_the_first_process(tiny, tmp_path, fresh, monkeypatch):
    """A cost that was measured once is not measured again."""
    options = {"tune": "measure", "tune_seconds": 0.5}
    cold = tvm_mxplan.compile(tiny, options=options)
    save_cache(tmp_path / "c", "mkldnn")
    fresh()
    load_cache(tmp_path / "c", "mkldnn")
    monkeypatch.setattr(StepTimer, "_time", lambda *_: pytest.fail("measured again"))
    assert programs_of(tvm_mxplan.compile(tiny, options=options)) == programs_of(cold)


def test_algorithms_and_what_crosses_between_regions(two_regions, tmp_path, fresh, decided, monkeypatch):
    options = {"convolutions": "winograd_f4"}
    cold = tvm_mxplan.compile(two_regions, options=options)
    steps = [step for region in cold.report.regions for step in region.steps]
    assert [step.implementation for step in steps if step.kind == "convolution"] == ["winograd_f4"] * 2
    assert all(region.crossing for region in cold.report.regions)
    assert len(decided) == 2
    assert save_cache(tmp_path / "c", "mkldnn") == 2
    fresh()
    assert load_cache(tmp_path / "c", "mkldnn") == 2
    chosen = watched(monkeypatch, choose_algorithms, "choose_algorithms")
    warm = tvm_mxplan.compile(two_regions, options=options)
    assert (len(decided), chosen) == (2, [])
    assert "choices for 2 of 2 region(s) replayed" in str(warm.report.cache)
    assert programs_of(warm) == programs_of(cold)
    image = np.random.default_rng(1).standard_normal((1, 64, 28, 28), np.float32)
    np.testing.assert_array_equal(warm(image)[0].numpy(), cold(image)[0].numpy())
    tvm_mxplan.compile(two_regions, options={**options, "max_relative_error": 1e-3})
    assert (len(decided), len(chosen)) == (4, 2)


def test_layouts_given_by_name_are_replayed(tiny, tmp_path, fresh, decided):
    options = {"layers": f"conv2d_1={BLOCKED_NAME}"}
    cold = tvm_mxplan.compile(tiny, options=options)
    save_cache(tmp_path / "c", "mkldnn")
    fresh()
    load_cache(tmp_path / "c", "mkldnn")
    warm = tvm_mxplan.compile(tiny, options=options)
    assert len(decided) == 1
    assert [region.layouts.forced for region in warm.report.regions] == [("conv2d_1",)]
    assert programs_of(warm) == programs_of(cold)
    tvm_mxplan.compile(tiny, options={"layers": "conv2d_1=nhwc"})
    assert len(decided) == 2


@pytest.mark.slow
def test_in_a_fresh_process(tiny, saved, tmp_path):
    onnx.save(tiny, tmp_path / "tiny.onnx")
    code = f"""
        import tvm_mxplan
        from tvm_mxplan.passes.layout import infer_layouts
        def fail(*_): raise AssertionError("chosen again")
        infer_layouts.infer_layouts = fail
        assert tvm_mxplan.load_cache({str(saved)!r}, "mkldnn") == 1
        print(tvm_mxplan.compile({str(tmp_path / "tiny.onnx")!r}).report.cache.outcome)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "hit"


def test_the_file_says_what_was_chosen(tiny, saved):
    container = open_container(saved)
    assert container.facts["type"] == "mkldnn"
    (region,) = json.loads(bytes(container.read("json", "choices")))
    steps = tvm_mxplan.compile(tiny, options={"cache": "disabled"}).report.regions[0].steps
    assert region["steps"] == [[s.name, s.kind, s.implementation, list(s.layouts)] for s in steps]


def test_choices_of_every_kind_are_saved_and_read(tmp_path, fresh):
    """The rest of the file, the listing for people, is no choice."""
    program = codec.encode(ir.Program("region", (), ()))
    kinds = {"algorithms": program, "layouts": program, "dispatch": b"conv2d"}
    made = {Key(kind, "a" * 64): data for kind, data in kinds.items()}
    choices = Choices()
    choices.made.update(made)
    choices_file.SESSION.keep(choices)
    choices_file.SESSION.symbolic = 1  # regions of named sizes beside them are no reason to refuse these
    assert save_cache(tmp_path / "c", "mkldnn") == 1
    fresh()
    assert load_cache(tmp_path / "c", "mkldnn") == 1
    assert choices_file.SESSION.choices({}).find_dispatch("a" * 64) == b"conv2d"
    assert choices_file.SESSION._loaded == made


@pytest.mark.slow
def test_choices_of_other_options_models_and_sessions_are_not_used(tiny, saved, decided):
    load_cache(saved, "mkldnn")
    for model, options in ((tiny, {"layouts": "plain"}), (zoo.load("tiny", batch=2), {})):
        report = tvm_mxplan.compile(model, options=options).report
        assert str(report.cache).startswith("cache: miss; choices for 0 of 1 region(s) replayed")
    assert len(decided) == 2
    tvm_mxplan.compile(zoo.load("tiny", batch=2))
    assert len(decided) == 3  # what this process made itself is decided again
    tvm_mxplan.compile(tiny, options={"cache": "disabled"})
    assert len(decided) == 4


def test_an_implementation_that_is_no_more(tiny, saved, decided, monkeypatch):
    """The library is asked again: where it would run something else, the choice is made anew."""
    load_cache(saved, "mkldnn")
    real = infer_layouts.annotate

    def other(program, backend):
        steps = tuple(replace(step, implementation="another") for step in program.steps)
        return replace(real(program, backend), steps=steps)

    monkeypatch.setattr(infer_layouts, "annotate", other)
    tvm_mxplan.compile(tiny)
    assert len(decided) == 1


def test_loaded_choices_are_saved_again(tiny, saved, tmp_path):
    load_cache(saved, "mkldnn")
    tvm_mxplan.compile(tiny)
    tvm_mxplan.compile(tiny, options={"layouts": "plain"})
    assert save_cache(tmp_path / "both", "mkldnn") == 2


def test_types(tmp_path):
    for call in (save_cache, load_cache):
        with pytest.raises(ValueError, match=r"'onnx'.*cudnn, host, tensorrt, mkldnn"):
            call(tmp_path / "c", "onnx")
        for type in ("host", "tensorrt"):
            with pytest.raises(UnsupportedError, match=f"{type}: .*this build"):
                call(tmp_path / "c", type)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_save(tiny, tmp_path):
    with pytest.raises(InvalidInputError, match="nothing to save"):
        save_cache(tmp_path / "c", "mkldnn")
    tvm_mxplan.compile(tiny, options={"cache": "disabled"})
    with pytest.raises(InvalidInputError, match="nothing to save"):
        save_cache(tmp_path / "c", "mkldnn")
    assert tvm_mxplan.compile(zoo.load("tiny", batch="N")).report.regions
    with pytest.raises(UnsupportedError, match="static shapes only"):
        save_cache(tmp_path / "c", "mkldnn")


@pytest.mark.parametrize("spoil, reason", UNUSABLE)
def test_a_file_that_cannot_be_used_is_a_warning(tiny, saved, decided, spoil, reason):
    spoil(saved)
    with pytest.warns(RuntimeWarning, match=reason):
        assert load_cache(saved, "mkldnn") == 0
    assert tvm_mxplan.compile(tiny).report.cache.outcome == "off"
    assert len(decided) == 1


def test_a_file_that_does_not_say_for_what_it_was_made(saved):
    assert {"machine", "versions", "schema", "type"} <= set(open_container(saved).facts)
    check_each_fact_is_needed(saved, "mkldnn")


def with_abs(program: ir.Program) -> ir.Program:
    """Every relu behind a convolution becomes an absolute value."""
    steps = [
        replace(step, post_ops=tuple(replace(post_op, algorithm="abs") for post_op in step.post_ops))
        if all(isinstance(post_op, ir.EltwisePostOp) for post_op in step.post_ops)
        else step
        for step in program.steps
    ]
    return replace(program, steps=tuple(steps))


def changed_programs(kind: str, data: bytes) -> bytes:
    return codec.encode(with_abs(codec.decode(data))) if kind in ("algorithms", "layouts") else data


def test_choices_that_compute_something_else(tiny, saved, decided):
    """Each is refused by the file's and the region's name, and made anew."""
    assert rewrite(saved, change=changed_programs) == 2
    assert load_cache(saved, "mkldnn") == 1
    warning = r"choices\.bin: region mxplan_onednn_0: the \w+ that were kept are not used, .*: step"
    with pytest.warns(RuntimeWarning, match=warning) as said:
        ex = tvm_mxplan.compile(tiny)
    assert {str(one.message).partition("the ")[2].split()[0] for one in said} == {"algorithms", "layouts"}
    assert decided == ["mxplan_onednn_0"]
    cold = tvm_mxplan.compile(tiny, options={"cache": "disabled"})
    assert programs_of(ex) == programs_of(cold)


def test_a_file_of_another_version_or_machine(saved, monkeypatch):
    from tvm_mxplan.cache.key import surroundings

    versions = {**surroundings._versions(), "oneDNN": "9.9.9"}
    with monkeypatch.context() as patch:
        patch.setattr(surroundings, "_versions", lambda: versions)
        with pytest.warns(RuntimeWarning, match=r"made for oneDNN '3\.\d+\.\d+', here it is '9\.9\.9'"):
            assert load_cache(saved, "mkldnn") == 0
    monkeypatch.setenv("OMP_NUM_THREADS", "17")
    with pytest.warns(RuntimeWarning, match="made for OMP_NUM_THREADS .* here it is '17'"):
        assert load_cache(saved, "mkldnn") == 0


def test_a_file_that_cannot_be_written_is_a_warning(tiny, tmp_path, monkeypatch):
    tvm_mxplan.compile(tiny)
    check_unwritable_is_a_warning(tmp_path, "mkldnn", monkeypatch)


def test_a_session_is_bounded():
    session = Session()
    for start in range(0, 3000, 10):
        session.add_loaded({Key("layouts", str(n)): b"" for n in range(start, start + 10)}, "")
    assert len(session._loaded) == 1024
    assert next(iter(session._loaded)).digest == str(3000 - 1024)
