"""The engine's side of libraries: what one without anything says, what all of them say together."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from tvm_mxplan.byoc import registry, runtime_engine
from tvm_mxplan.byoc.engine import Engine
from tvm_mxplan.byoc.host.engine import HostEngine
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.engine import OneDNNEngine
from tvm_mxplan.byoc.runtime_engine import RuntimeEngine
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.execution import caches
from tvm_mxplan.execution.threads import set_threads, thread_limit, threads, with_threads

PUBLIC = [name for name, _ in inspect.getmembers(Engine, inspect.isfunction) if not name.startswith("_")]


class Second(Engine):
    """An engine with threads, a version, and one cache."""

    name = "second"

    def __init__(self) -> None:
        self.count, self.capacity = 1, (10, 100)

    def code(self) -> dict[str, str]:
        return self.versions()

    def versions(self) -> dict[str, str]:
        return {"second": "7.1"}

    def threads(self) -> int:
        return self.count

    def set_threads(self, count: int) -> None:
        self.count = count

    def thread_limit(self) -> int | None:
        return 3

    def cache_counters(self, cache: str) -> dict[str, int]:
        kept = {"most_entries": self.capacity[0], "most_bytes": self.capacity[1]}
        counters = {"hits": 5, "misses": 0, "evictions": 0, "entries": 2, "bytes": 9, **kept}
        return counters if cache == "weights" else {}

    def set_cache_capacity(self, cache: str, entries: int, bytes: int) -> None:
        self.capacity = (entries, bytes)


@contextmanager
def second() -> Iterator[Engine]:
    def no_planner() -> None:
        raise AssertionError("engines do without planners")

    with registry.registered(registry.Library("second", "mxplan_second", no_planner, Second, ("2nd",))):  # type: ignore[arg-type]
        yield registry.engine("second")


ABOUT_DEVICES = {
    "device_libraries", "kept_plans", "add_plans", "plan_title", "plan_versions", "failed_plans",
}  # fmt: skip
"""Answers of libraries whose kernels are planned ahead, for a device."""


def test_onednn_overrides_every_answer() -> None:
    assert len(PUBLIC) > 15
    left = {name for name in PUBLIC if getattr(OneDNNEngine, name) is getattr(Engine, name)}
    assert left == ABOUT_DEVICES and not OneDNNEngine.keeps_plans


def test_a_library_that_has_nothing() -> None:
    engine = Engine()
    engine.load()
    assert (engine.facts(), engine.kernel_environment(), engine.threads()) == ({}, {}, 1)
    assert (engine.cache_counters("weights"), engine.stats(None)) == ({}, {"specializations": []})
    for refused in (
        lambda: engine.create_module("m", b"", []),
        lambda: engine.split_weights(None),
        lambda: engine.save_packed(None),
        lambda: engine.planner_elsewhere(lambda *_: None, {}),
    ):
        with pytest.raises(UnsupportedError):
            refused()


def test_threads_are_one_number_for_all() -> None:
    before = library.threads()
    with second() as engine:
        try:
            set_threads(2)
            assert (library.threads(), engine.threads(), threads()) == (2, 2, 2)
            with with_threads(1):
                assert (library.threads(), engine.threads()) == (1, 1)
            assert threads() == 2
            engine.set_threads(3)
            assert threads() == 3
            assert thread_limit() == min(3, library.thread_limit())
        finally:
            set_threads(before)
    assert thread_limit() == library.thread_limit()


def test_facts_and_caches_are_those_of_all() -> None:
    alone, hits = registry.code(), caches.cache_statistics()["weights"].hits
    found = registry.versions()
    assert found.pop("oneDNN") == library.version()
    assert set(found) <= {"cuDNN"}  # where the extra is installed
    with second() as engine:
        assert registry.code() == {**alone, "second": "7.1"}
        assert registry.facts()["second"] == "7.1"
        together = caches.cache_statistics()
        assert together["weights"].hits == hits + 5
        onednn = library.cache_counters("weights")
        caches.set_cache_capacity("weights", entries=onednn["most_entries"])
        assert engine.capacity == (onednn["most_entries"], 100)  # type: ignore[attr-defined]
        assert library.cache_counters("weights")["most_bytes"] == onednn["most_bytes"]
    assert registry.code() == alone


def test_a_library_that_is_not_there_is_named() -> None:
    for ask in (registry.engine, registry.planner):
        with pytest.raises(UnsupportedError, match="no library 'nobody' here; there are onednn"):
            ask("nobody")


def test_a_module_belongs_to_the_engine_that_made_it() -> None:
    values = tuple(ir.Value("", (3, 5), "float32", kind, "ab", 0) for kind in ("input", "output"))
    step = ir.Step("", ir.Eltwise("relu", 0.0, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    engine = registry.engine("onednn")
    module = engine.create_module("m", codec.encode(ir.Program("p", values, (step,))), [])
    assert registry.engine_of(module) is engine
    import tvm_ffi

    x, y = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5), np.empty((3, 5), np.float32)
    module["m"](tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y))
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    assert len(engine.stats(module)["specializations"]) == 1


class _Noting:
    """Functions of any name that note their arguments and give something new."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[object, ...]]] = []
        self.answers: list[object] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        def function(*arguments: object) -> object:
            self.asked.append((name, arguments))
            self.answers.append(f"{name}, answer {len(self.answers)}")
            return self.answers[-1]

        return function


@pytest.mark.parametrize("engine", [OneDNNEngine(), OneDNN()], ids=["engine", "backend"])
def test_each_question_goes_to_the_library_with_its_arguments(
    monkeypatch: pytest.MonkeyPatch, engine
) -> None:
    forwarded = 0
    module = sys.modules[type(engine).__module__]
    for name, function in inspect.getmembers(engine, inspect.ismethod):
        if name in vars(type(engine)) and hasattr(library, name) and not name.startswith("_"):
            noting = _Noting()
            monkeypatch.setattr(module, "library", noting)
            given = tuple(f"argument {at}" for at in range(len(inspect.signature(function).parameters)))
            answer = function(*given)
            assert noting.asked == [(name, given)]
            assert answer in (None, noting.answers[0])
            assert (answer is None) == (inspect.signature(function).return_annotation == "None")
            forwarded += 1
    assert forwarded >= (6 if isinstance(engine, OneDNNEngine) else 4)


@pytest.mark.parametrize("engine", [OneDNNEngine(), HostEngine(lambda: None)], ids=["onednn", "host"])
def test_each_question_goes_to_the_runtime_with_its_arguments(
    monkeypatch: pytest.MonkeyPatch, engine: RuntimeEngine
) -> None:
    forwarded = 0
    for name, function in inspect.getmembers(engine, inspect.ismethod):
        if name in vars(RuntimeEngine) and name not in vars(type(engine)) and not name.startswith("_"):
            noting = _Noting()
            monkeypatch.setattr(engine, "_runtime", noting)
            monkeypatch.setattr(runtime_engine, "runtime_functions", noting)
            given = tuple(f"argument {at}" for at in range(len(inspect.signature(function).parameters)))
            answer = function(*given)
            assert noting.asked == [(name, given)]
            assert answer in (None, noting.answers[0])
            assert (answer is None) == (inspect.signature(function).return_annotation == "None")
            forwarded += 1
    assert forwarded == 10


KERNELS = ("MAX_CPU_ISA", "CPU_ISA_HINTS", "DEFAULT_FPMATH_MODE")


def test_what_onednn_says_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = OneDNNEngine()
    assert engine.code() == {"instruction set": library.isa(), "oneDNN": library.version()}
    assert engine.facts() == {**engine.code(), "oneDNN threads": library.threads()}
    names = [f"{prefix}_{name}" for prefix in ("ONEDNN", "DNNL") for name in KERNELS]
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert engine.kernel_environment() == {"oneDNN environment": {}}
    for name in (*names, "ONEDNN_VERBOSE"):
        monkeypatch.setenv(name, "0")
    assert engine.kernel_environment() == {"oneDNN environment": dict.fromkeys(names, "0")}
