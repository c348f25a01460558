"""``cache="on_compile"``: the second compilation reads what the first one wrote, or does its work again."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from compile_outcomes import X, check, compiled, facts_of, outcome
from onnx import helper, numpy_helper
from tvm import relax

import tvm_mxplan
from tvm_mxplan import opcheck
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.cache import compile_cache
from tvm_mxplan.cache.compile_cache import CompileCache
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.frontend.stated_inputs import StatedInputs
from tvm_mxplan.targets import TargetText
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2


@pytest.fixture(scope="module")
def with_kernels() -> onnx.ModelProto:
    """Two regions with an operator of TVM's own between them."""
    weights = np.random.default_rng(0).standard_normal((17, 3, 3, 3), np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"]),
        helper.make_node("Atan", ["c"], ["g"]),
        helper.make_node("Tanh", ["g"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "kernels",
        [helper.make_tensor_value_info("image", 1, (1, 3, 9, 9))],
        [helper.make_tensor_value_info("y", 1, (1, 17, 7, 7))],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# --- time ---------------------------------------------------------------------------------------------


def test_all_that_the_cache_takes_is_counted(tiny, cache_folder, monkeypatch):
    """By a clock that ticks once each time it is read: a second for what is asked, found and kept."""
    target = TargetText.of("onednn, llvm")
    ticks = iter(range(7, 100))
    monkeypatch.setattr(compile_cache.time, "perf_counter", lambda: float(next(ticks)))
    options = tvm_mxplan.Options(cache="on_compile")
    cache = CompileCache(tiny, StatedInputs(), target, options)
    assert cache.seconds == 1.0
    assert cache.find() is None
    assert (cache.seconds, cache.report.outcome) == (2.0, "miss")
    told: list[dict[str, Any]] = []
    report = SimpleNamespace(seconds={"passes": 1.5})
    executable = SimpleNamespace(report=report, amend_report=lambda **fields: told.append(fields))
    monkeypatch.setattr(compile_cache, "_store", lambda *_: "name.mxcache")
    assert cache.keep(executable, {}) is executable
    assert (cache.seconds, told[0]["seconds"]) == (3.0, {"passes": 1.5, "cache": 3.0})
    assert (told[0]["cache"].outcome, told[0]["cache"].file) == ("miss", "name.mxcache")
    assert CompileCache(tiny, None, target, tvm_mxplan.Options(cache="disabled")).seconds == 0.0


@pytest.mark.parametrize(
    ("target", "disabled", "asked"),
    [("onednn, llvm", False, True), ("llvm", False, False), ("onednn, llvm", True, False)],
)
def test_the_machine_is_measured_where_a_library_takes_part(tiny, monkeypatch, target, disabled, asked):
    """Rates are part of what a compilation is found by; TVM alone does not go by them."""
    calls = []
    monkeypatch.setattr(compile_cache, "rates_here", lambda kept: calls.append(kept) or default_rates(2))
    if disabled:
        monkeypatch.setenv("TVM_MXPLAN_DISABLE", "1")
    options = tvm_mxplan.Options(cache="on_compile", machine="measured")
    CompileCache(tiny, StatedInputs(), TargetText.of(target), options)
    assert calls == ([True] if asked else [])


# --- hits ---------------------------------------------------------------------------------------------


def test_the_second_compilation_is_read(tiny, cache_folder, monkeypatch):
    cold = compiled(tiny)
    assert (cold.report.cache.outcome, cold.report.cache.reason) == ("miss", "no such file")
    monkeypatch.setattr(relax, "build", lambda *_, **__: pytest.fail("built again"))
    warm = compiled(tiny)
    assert warm.report.cache.outcome == "hit"
    assert warm.report.cache.file == cold.report.cache.file
    assert [path.name for path in cache_folder.glob("*.mxcache")] == [cold.report.cache.file]
    assert warm.signature == cold.signature
    assert facts_of(warm) == facts_of(cold)
    assert set(warm.report.seconds) == {"cache"}
    np.testing.assert_array_equal(warm(X)[0].numpy(), cold(X)[0].numpy())
    check(warm, tiny)
    assert "cache: hit" in str(warm.report)
    assert tvm_mxplan.Report.from_json(warm.report.to_json()) == warm.report


def test_a_file_and_a_proto_are_one_model(tiny, tmp_path):
    onnx.save(tiny, tmp_path / "tiny.onnx")
    assert outcome(tmp_path / "tiny.onnx") == "miss"
    assert outcome(tiny) == "hit"
    ex = compiled(tmp_path / "tiny.onnx")
    assert ex.report.cache.outcome == "hit"
    (tmp_path / "tiny.onnx").write_bytes(b"")  # weights were copied out of the file
    check(ex, tiny)


def test_a_relax_module(tiny):
    from tvm_mxplan.frontend.onnx import import_model

    mod = import_model(tiny)
    cold, warm = compiled(mod), compiled(import_model(tiny))
    assert (cold.report.cache.outcome, warm.report.cache.outcome) == ("miss", "hit")
    np.testing.assert_array_equal(warm(X)[0].numpy(), cold(X)[0].numpy())


def test_a_symbolic_batch():
    model = zoo.load("tiny", batch="N")
    assert outcome(model) == "miss"
    ex = compiled(model)
    assert ex.report.cache.outcome == "hit"
    for batch in (1, 3):
        inputs = zoo.random_inputs(model, batch=batch)
        actual = [tensor.numpy() for tensor in ex(**inputs)]
        assert worst_relative_l2(actual, onnxruntime_outputs(model, inputs)) <= 1e-5


@pytest.mark.parametrize("target", ["dnnl, llvm", "llvm"])
def test_kernels_of_tvms_own(with_kernels, target, tmp_path):
    """They run from the library that was linked for the file, and can be exported again."""
    inputs = {"image": np.random.default_rng(1).standard_normal((1, 3, 9, 9), np.float32)}
    expected = onnxruntime_outputs(with_kernels, inputs)
    exs = [tvm_mxplan.compile(with_kernels, target, options={"cache": "on_compile"}) for _ in range(2)]
    assert [ex.report.cache.outcome for ex in exs] == ["miss", "hit"]
    for number, ex in enumerate(exs):
        ex.export(tmp_path / f"{number}.so")
        for runnable in (ex, tvm_mxplan.load(tmp_path / f"{number}.so")):
            actual = [tensor.numpy() for tensor in runnable(**inputs)]
            assert worst_relative_l2(actual, expected) <= 1e-5


def test_regions_between_which_a_tensor_crosses(two_regions, tmp_path):
    cold, warm = (compiled(two_regions, convolutions="winograd_f4") for _ in range(2))
    assert warm.report.cache.outcome == "hit"
    steps = [step for region in warm.report.regions for step in region.steps]
    assert [step.implementation for step in steps if step.kind == "convolution"] == ["winograd_f4"] * 2
    assert all(region.crossing and region.layouts for region in warm.report.regions)
    assert facts_of(warm) == facts_of(cold)
    inputs = zoo.random_inputs(two_regions, seed=3)
    warm.export(tmp_path / "warm.so")
    for ex in (warm, tvm_mxplan.load(tmp_path / "warm.so")):
        np.testing.assert_array_equal(ex(**inputs)[0].numpy(), cold(**inputs)[0].numpy())
    assert worst_relative_l2([warm(**inputs)[0].numpy()], onnxruntime_outputs(two_regions, inputs)) <= 1e-5


def region_modules(module: Any) -> list[Any]:
    found = [module] if module.kind == "mxplan_onednn" else []
    return found + [region for child in module.imports for region in region_modules(child)]


def packed_bytes(ex: tvm_mxplan.Executable) -> int:
    """Bytes of packed weights that the process holds for an executable that has run."""
    return sum(library.stats(region)["packed_weight_bytes"] for region in region_modules(ex.module.mod))


@pytest.mark.parametrize("algorithm", ["direct", "winograd_f4"])
def test_packed_weights_are_used_where_the_file_is_mapped(two_regions, cache_folder, tmp_path, algorithm):
    cold, warm = (compiled(two_regions, convolutions=algorithm) for _ in range(2))
    assert warm.report.cache.outcome == "hit"
    inputs = zoo.random_inputs(two_regions, seed=3)
    packings = tvm_mxplan.cache_statistics()["weights"].misses
    actual = warm(**inputs)[0].numpy()
    assert tvm_mxplan.cache_statistics()["weights"].misses == packings
    assert packed_bytes(warm) == 0
    np.testing.assert_array_equal(actual, cold(**inputs)[0].numpy())
    assert packed_bytes(cold) > 0
    assert worst_relative_l2([actual], onnxruntime_outputs(two_regions, inputs)) <= 1e-5
    opcheck.check(warm, **inputs).raise_first()
    warm.export(tmp_path / "warm.so")  # plain weights, as ever
    cold.export(tmp_path / "cold.so")
    sizes = [(tmp_path / name).stat().st_size for name in ("warm.so", "cold.so")]
    assert abs(sizes[0] - sizes[1]) < 4096
    np.testing.assert_array_equal(tvm_mxplan.load(tmp_path / "warm.so")(**inputs)[0].numpy(), actual)


def test_without_packed_weights(two_regions, cache_folder):
    cold, warm = (compiled(two_regions, packed_weights=False) for _ in range(2))
    assert warm.report.cache.outcome == "hit"
    (small,) = (path.stat().st_size for path in cache_folder.glob("*.mxcache"))
    assert small < 64 * 64 * 9 * 4  # the weights are the model's, which has just been read
    inputs = zoo.random_inputs(two_regions, seed=3)
    np.testing.assert_array_equal(warm(**inputs)[0].numpy(), cold(**inputs)[0].numpy())
    assert packed_bytes(warm) == packed_bytes(cold) > 0


def test_no_linker(with_kernels, monkeypatch):
    monkeypatch.setattr("tvm.support.cc.get_cc", lambda: None)
    report = compiled(with_kernels).report
    assert report.cache.reason == "no such file; not stored: no C compiler to link TVM's kernels with"
    assert outcome(with_kernels) == "miss"


def test_a_linker_that_fails(with_kernels, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("ld returned 1")

    monkeypatch.setattr("tvm.support.cc.create_shared", fail)
    report = compiled(with_kernels).report
    assert report.cache.reason == "no such file; not stored: RuntimeError: ld returned 1"


def test_a_plug_in_that_cannot_read_itself(tiny, monkeypatch):
    from tvm_mxplan.cache.key import surroundings

    def unreadable(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(surroundings, "_versions", surroundings._versions.__wrapped__)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", unreadable)
        for cache in ("on_compile", "save_reload"):
            report = tvm_mxplan.compile(tiny, options={"cache": cache}).report
            assert report.cache.outcome == "bypassed"
            assert "own files cannot be read (Permission denied)" in report.cache.reason


def test_in_a_fresh_process(tiny, tmp_path):
    onnx.save(tiny, tmp_path / "tiny.onnx")
    expected = compiled(tmp_path / "tiny.onnx")(X)[0].numpy()
    np.save(tmp_path / "x.npy", X)
    code = f"""
        import numpy as np, tvm_mxplan
        ex = tvm_mxplan.compile({str(tmp_path / "tiny.onnx")!r}, options={{"cache": "on_compile"}})
        assert ex.report.cache.outcome == "hit", ex.report.cache
        np.save({str(tmp_path / "y.npy")!r}, ex(np.load({str(tmp_path / "x.npy")!r}))[0].numpy())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)


# --- processes ----------------------------------------------------------------------------------------

COMPILE = """
import sys, numpy as np, tvm_mxplan
ex = tvm_mxplan.compile(sys.argv[1], options={"cache": "on_compile"})
np.save(sys.argv[3], ex(np.load(sys.argv[2]))[0].numpy())
"""


@pytest.mark.slow
def test_killed_half_way_and_two_at_once(tiny, tmp_path, cache_folder):
    onnx.save(tiny, tmp_path / "tiny.onnx")
    np.save(tmp_path / "x.npy", X)
    arguments = [str(tmp_path / "tiny.onnx"), str(tmp_path / "x.npy")]
    die = (
        "import os, signal\nfrom tvm_mxplan.cache import container\n"
        "container.os.pwrite = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", die + COMPILE, *arguments, str(tmp_path / "no.npy")])
    assert killed.returncode == -signal.SIGKILL
    assert len(list(cache_folder.glob(".partial-*"))) == 1
    both = [
        subprocess.Popen([sys.executable, "-c", COMPILE, *arguments, str(tmp_path / f"{n}.npy")])
        for n in range(2)
    ]
    assert [process.wait(600) for process in both] == [0, 0]
    assert list(cache_folder.glob(".partial-*")) == []
    ex = compiled(tmp_path / "tiny.onnx")
    assert ex.report.cache.outcome == "hit"
    for n in range(2):
        np.testing.assert_array_equal(np.load(tmp_path / f"{n}.npy"), ex(X)[0].numpy())
