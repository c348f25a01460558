"""A compilation checks, remembers and refuses: whole models, with kernels that are really wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from single_kernels import Array, Faulty

import tvm_mxplan
from tvm_mxplan import Options
from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.decisions.verification import Checked, Verification
from tvm_mxplan.core.kernel import Kernel
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2
from tvm_mxplan.tuning.place import Here
from tvm_mxplan.verify import verifier


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test knows what another one of this process has checked or refused."""
    monkeypatch.setattr(verifier, "PROCESS", verifier.Process())
    library.forget_refusals()
    yield
    library.forget_refusals()
    library.set_errata(True)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Faulty]:
    """Makes kernels of implementations with this in their names wrong, where they are checked."""

    def with_fault(part: str) -> Faulty:
        backend, planner = Faulty(_spoil, lambda name: part in name), registry.planner
        monkeypatch.setattr(registry, "planner", lambda name: backend if name == "onednn" else planner(name))
        return backend

    return with_fault


def _spoil(out: Array) -> None:
    out.reshape(-1)[::7] += 1


def transposed(channels: int = 512) -> onnx.ModelProto:
    """A transposed convolution and a relu, which oneDNN 3.2 gets wrong by itself."""
    weights = np.random.default_rng(0).standard_normal((channels, 67, 4, 4)).astype("f") / 90
    nodes = [
        helper.make_node(
            "ConvTranspose", ["x", "w"], ["a"], kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4
        ),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, 1, shape)
        for name, shape in (("x", [1, channels, 4, 5]), ("y", None))
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


X = np.random.default_rng(1).standard_normal((1, 512, 4, 5)).astype("f")


def error(ex: tvm_mxplan.Executable, model: onnx.ModelProto, inputs: dict[str, Array]) -> float:
    return worst_relative_l2([y.numpy() for y in ex(**inputs)], onnxruntime_outputs(model, inputs))


def runs(ex: tvm_mxplan.Executable, kind: str) -> list[str]:
    return [s.implementation for r in ex.report.regions for s in r.steps if s.kind == kind]


def verification(ex: tvm_mxplan.Executable) -> Verification:
    assert ex.report.verification is not None
    return ex.report.verification


# --- a real fault ----------------------------------------------------------------------------------------


def test_a_kernel_of_the_library_that_is_wrong(tmp_path: Path) -> None:
    """Found, refused by name, replaced; and so wherever the plan goes, and in the next process."""
    model = transposed()
    library.set_errata(False)
    trusted = tvm_mxplan.compile(model, options={"verify": "off"})
    (wrong,) = runs(trusted, "deconvolution")
    assert trusted.report.verification is None
    if error(trusted, model, {"x": X}) < 1e-5:
        pytest.skip(f"{wrong} is right on this machine")
    ex = tvm_mxplan.compile(model)
    (refusal,) = verification(ex).refused
    assert (refusal.implementation, refusal.step) == (wrong, "conv2d_transpose_0")
    assert runs(ex, "deconvolution") and wrong not in runs(ex, "deconvolution")
    assert error(ex, model, {"x": X}) < 1e-5
    for text in (str(ex.report), ex.report.explain(), ex.report.explain("conv2d_transpose_0")):
        assert f"conv2d_transpose_0: {wrong} refused for deconvolution 1x512x4x5" in text
    there = tvm_mxplan.compile(model, options={"layouts": "channels_last"})  # where it would have run
    assert f"{wrong} refused (wrong on this machine" in there.report.explain("conv2d_transpose_0")

    again = tvm_mxplan.compile(model)
    assert (verification(again).checked, verification(again).refused) == (0, ())
    assert runs(again, "deconvolution") == runs(ex, "deconvolution")

    ex.export(tmp_path / "model.so")
    np.save(tmp_path / "x.npy", X)
    load = (
        "import sys, numpy as np, tvm_mxplan\nfrom tvm_mxplan.byoc.onednn import library\n"
        "library.set_errata(False)\nex = tvm_mxplan.load(sys.argv[1] + '/model.so')\n"
        "np.save(sys.argv[1] + '/y.npy', ex(np.load(sys.argv[1] + '/x.npy'))[0].numpy())\n"
    )
    elsewhere = {**os.environ, "TVM_MXPLAN_CACHE_DIR": str(tmp_path / "another")}
    subprocess.run([sys.executable, "-c", load, str(tmp_path)], check=True, env=elsewhere)
    assert worst_relative_l2([np.load(tmp_path / "y.npy")], onnxruntime_outputs(model, {"x": X})) < 1e-5

    # Another process: nothing is checked, nothing is planned twice, and the plan is the right one.
    library.forget_refusals()
    verifier.PROCESS = verifier.Process()
    fresh = tvm_mxplan.compile(model)
    assert verification(fresh).checked == 0
    assert verification(fresh).notes == ("1 kernel(s) refused earlier on this machine",)
    assert runs(fresh, "deconvolution") == runs(ex, "deconvolution")


# --- faults made up --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("part", ["winograd", "row_product", "dw:"])
def test_the_next_best_is_taken(faulty: Callable[[str], Faulty], part: str) -> None:
    model = zoo.load(zoo.TINY)
    options = {"convolutions": "winograd_f4"} if part == "winograd" else {}
    right = tvm_mxplan.compile(model, options={**options, "verify": "off"})
    used = {s.implementation for r in right.report.regions for s in r.steps if part in s.implementation}
    if not used:
        pytest.skip(f"no {part} in this model on this machine")
    faulty(part)
    ex = tvm_mxplan.compile(model, options=options)
    refused = verification(ex).refused
    assert refused and all(part in one.implementation for one in refused)
    assert not [s for r in ex.report.regions for s in r.steps if part in s.implementation]
    assert ex.report.offloaded == right.report.offloaded
    assert error(ex, model, zoo.random_inputs(model)) < 1e-4


@pytest.mark.slow
def test_where_all_is_wrong_tvm_runs_it(faulty: Callable[[str], Faulty]) -> None:
    backend = faulty("")
    model = zoo.load(zoo.TINY)
    ex = tvm_mxplan.compile(model)
    assert backend.ran and ex.report.regions == ()
    assert "refused" in " ".join(fallback.reason for fallback in ex.report.fallbacks)
    assert error(ex, model, zoo.random_inputs(model)) < 1e-4


@pytest.mark.slow
def test_what_is_measured_to_be_fast_is_checked_too(faulty: Callable[[str], Faulty]) -> None:
    faulty("winograd")
    model = zoo.load(zoo.TINY)
    options = {"tune": "measure", "tune_trials": 2, "convolutions": "winograd_f4"}
    ex = tvm_mxplan.compile(model, options=options)
    assert ex.report.tuning is not None and sum(ex.report.tuning.measured.values()) > 0
    assert verification(ex).refused
    assert not [name for name in runs(ex, "convolution") if "winograd" in name]
    assert error(ex, model, zoo.random_inputs(model)) < 1e-4


# --- what is remembered ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_checked_twice(faulty: Callable[[str], Faulty], monkeypatch: pytest.MonkeyPatch) -> None:
    backend = faulty("nothing is")
    model = zoo.load(zoo.TINY)
    first = verification(tvm_mxplan.compile(model))
    assert first.checked > 3 and (first.remembered, first.refused, first.unchecked) == (0, (), ())
    ran = len(backend.ran)
    assert ran >= first.checked
    again = verification(tvm_mxplan.compile(zoo.load(zoo.TINY, seed=5)))  # other weights, the same kernels
    assert (again.checked, again.remembered) == (0, first.checked)
    off = tvm_mxplan.compile(model, options={"verify": "off"})
    assert off.report.verification is None
    monkeypatch.setattr(verifier, "PROCESS", verifier.Process())  # as another process
    fresh = verification(tvm_mxplan.compile(model))
    assert (fresh.checked, fresh.remembered) == (0, first.checked)
    assert len(backend.ran) == ran
    other = verification(tvm_mxplan.compile(zoo.load(zoo.TINY, batch=3)))
    assert other.checked > 0
    everything = verification(tvm_mxplan.compile(model, options={"verify": "all"}))
    assert (everything.checked, everything.remembered) == (first.checked, 0)


@pytest.mark.slow
def test_without_a_folder_the_process_remembers(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.load(zoo.TINY)
    first = verification(tvm_mxplan.compile(model, options={"cache": "disabled"}))
    assert first.checked and not cache_folder.exists()
    again = verification(tvm_mxplan.compile(model, options={"cache": "disabled"}))
    assert (again.checked, again.remembered) == (0, first.checked)
    kept = verification(tvm_mxplan.compile(model))  # the file is given what the process knows
    assert (kept.checked, kept.remembered) == (0, first.checked)
    monkeypatch.setattr(verifier, "PROCESS", verifier.Process())
    assert verification(tvm_mxplan.compile(model)).checked == 0


def test_a_damaged_file_is_a_miss(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.load(zoo.TINY)
    first = verification(tvm_mxplan.compile(model))
    (path,) = (cache_folder / "verified").iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    monkeypatch.setattr(verifier, "PROCESS", verifier.Process())
    again = verification(tvm_mxplan.compile(model))
    assert again.checked == first.checked
    assert "1 damaged line(s) left out" in again.notes[0]


def test_a_folder_that_cannot_be_written_costs_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path / "file"))
    found = verification(tvm_mxplan.compile(zoo.load(zoo.TINY)))
    assert found.checked and "verified kernels are not kept" in found.notes[-1]
    monkeypatch.delenv("TVM_MXPLAN_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "relative")
    found = verification(tvm_mxplan.compile(zoo.load(zoo.TINY)))
    assert found.remembered and "no absolute folder" in found.notes[0]


def test_symbolic_shapes_at_typical_numbers(faulty: Callable[[str], Faulty]) -> None:
    backend = faulty("nothing is")
    model = zoo.load(zoo.TINY, batch="n")
    ex = tvm_mxplan.compile(model)
    found = verification(ex)
    assert found.checked >= 2 * len({step.name for step in ex.report.regions[0].steps}) - 2
    assert len(backend.ran) >= found.checked
    assert error(ex, model, zoo.random_inputs(model, batch=3)) < 1e-4


# --- the cache of compilations ---------------------------------------------------------------------------


def test_a_hit_is_verified_already(monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.load(zoo.TINY)
    stored = {"cache": "on_compile"}
    off = tvm_mxplan.compile(model, options={**stored, "verify": "off"})
    assert off.report.cache.outcome == "miss"
    first = tvm_mxplan.compile(model, options=stored)
    assert first.report.cache.outcome == "miss" and verification(first).checked
    hit = tvm_mxplan.compile(model, options=stored)
    assert hit.report.cache.outcome == "hit" and hit.report.verification == first.report.verification
    everything = tvm_mxplan.compile(model, options={**stored, "verify": "all"})
    assert "checked again" in everything.report.cache.reason
    assert verification(everything).checked == verification(first).checked


@pytest.mark.slow
def test_a_kernel_found_wrong_later_makes_older_hits_misses(faulty: Callable[[str], Faulty]) -> None:
    model = zoo.load(zoo.TINY)
    stored = {"cache": "on_compile", "convolutions": "winograd_f4"}
    first = tvm_mxplan.compile(model, options=stored)
    assert "winograd_f4" in runs(first, "convolution")
    faulty("winograd")
    again = tvm_mxplan.compile(model, options={**stored, "verify": "all"})
    assert verification(again).refused
    third = tvm_mxplan.compile(model, options=stored)
    assert third.report.cache.outcome == "miss"
    assert "winograd_f4" not in runs(third, "convolution")
    assert tvm_mxplan.compile(model, options=stored).report.cache.outcome == "hit"


def test_a_report_keeps_it() -> None:
    report = tvm_mxplan.compile(zoo.load(zoo.TINY)).report
    assert type(report).from_json(report.to_json()).verification == report.verification
    assert "kernels verified: " in str(report) and "0 refused" in str(report)


def test_the_option_names_what_it_takes() -> None:
    with pytest.raises(tvm_mxplan.InvalidInputError, match="verify='always'; expected one of new, all, off"):
        Options(verify="always")


def test_equal_kernels_of_two_libraries_are_two() -> None:
    """Both call what runs them by one name, and have one step."""
    asked: list[str] = []

    class Watching(Here):
        def check_kernel(self, backend: Backend, kernel: Kernel) -> Checked:
            asked.append(backend.library)
            return Checked("agreed")

    values = tuple(ir.Value("", (3, 5), "float32", kind, "ab", 0) for kind in ("input", "output"))
    operands = (ir.Operand("src", 0), ir.Operand("dst", 1))
    step = ir.Step("relu_0", ir.Eltwise("relu", 0.0, 0.0), operands, implementation="loops")
    planned = [ir.Program("region", values, (step,))]
    found = verifier.Verifier(tvm_mxplan.Options(cache="disabled"), Watching())
    for library_name in ("one", "other", "one"):
        assert found.wrong(SimpleNamespace(library=library_name), planned) == {}  # type: ignore[arg-type]
    assert asked == ["one", "other"]
