"""The arithmetic of measuring: on a machine that is simulated, the rates are those that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.costs import measure
from tvm_mxplan.core.description import Description, StepInfo
from tvm_mxplan.core.machine import MemoryLevel
from tvm_mxplan.core.program import program as ir

THREADS = 4
START, FORK = 0.25, 1.75
MIB = 1 << 20


class Machine:
    """Takes its time from what a program does; ``read`` and ``copied`` are by bytes that a run moves."""

    def __init__(self, **faults: float) -> None:
        self.now = THREADS
        self.threads: list[int] = []
        self.faults = faults
        self.moved: list[tuple[str, int]] = []
        self.bound: list[int] = []
        self.error = ""

    def set_threads(self, threads: int) -> None:
        self.threads.append(threads)
        self.now = threads

    def speed(self, nbytes: int) -> tuple[float, float]:
        """GB/s read, copied."""
        if nbytes <= MIB:
            return 100.0, 120.0
        return (60.0, 80.0) if nbytes <= 16 * MIB else (30.0, 20.0)

    def best_us(self, program: ir.Program) -> float:
        step = program.steps[0]
        shape = program.values[step.operand("src")].shape
        woken = FORK if self.now > 1 else 0.0
        if isinstance(step.attrs, ir.Convolution):
            weights = program.values[step.operand("weights")].shape
            operations = 2 * int(np.prod(weights)) * shape[2] * shape[3]
            if step.attrs.groups > 1:
                assert shape[1] == weights[0] * weights[2] and weights[0] == step.attrs.groups
                assert program.values[step.dst].shape == shape
            speeds = {"": 400.0, "narrow": 150.0, "jit": 240.0, "grouped": 90.0}
            return operations / speeds[step.attrs.preferred] / 1e3
        if isinstance(step.attrs, ir.InnerProduct):
            rows, terms = program.values[step.operand("weights")].shape
            assert (terms, rows) == (shape[1], program.values[step.dst].shape[1])
            self.moved.append(("read", 4 * rows * terms))
            return 4 * rows * terms / self.speed(4 * rows * terms)[0] / 1e3
        if len(shape) == 2:
            return len(program.steps) * (START + woken)
        self.moved.append(("copied", 8 * shape[0]))
        return START + woken + 8 * shape[0] / self.speed(8 * shape[0])[1] / 1e3

    def best_us_of(self, run: Callable[[], object], before: Callable[[], object]) -> float:
        before()
        run()
        speed = 1e3 * self.faults.get("exchanged", 40.0)
        return START + FORK + (THREADS - 1) / THREADS * self.bound[-1] / speed

    def function(self, program: ir.Program, constants: list[np.ndarray]) -> Callable[..., Callable[[], None]]:
        assert constants == []

        def bind(*arrays: np.ndarray) -> Callable[[], None]:
            assert [array.shape for array in arrays] == [value.shape for value in program.values]
            self.bound.append(arrays[0].nbytes)
            return lambda: None

        return bind

    def describe(self, program: ir.Program) -> Description:
        others = ("narrow", "other", "unknown")
        if program.steps[0].attrs.groups > 1:  # type: ignore[union-attr]
            others = ("jit", "old", "grouped")
        info = StepInfo("wide", 0, 0, self.error, alternatives=others)
        return Description((info.running(self.named("wide")),), ())

    def named(self, name: str) -> SimpleNamespace:
        known = {"wide": "avx512", "narrow": "avx2", "other": "avx512", "jit": "avx512", "grouped": "avx2"}
        if name == "old":
            return SimpleNamespace(name=name, family="jit", instruction_set="sse41", is_reference=False)
        return SimpleNamespace(
            name=name, family=name, instruction_set=known.get(name, ""), is_reference=False
        )


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Machine]:
    def begin(sizes: tuple[int, ...], threads: int = THREADS, **faults: float) -> Machine:
        machine = Machine(**faults)
        machine.now = threads
        for name in ("describe", "set_threads"):
            monkeypatch.setattr(library, name, getattr(machine, name))
        monkeypatch.setattr(library, "threads", lambda: threads)
        monkeypatch.setattr(measure, "implementation_named", machine.named)
        monkeypatch.setattr(measure, "cache_sizes", lambda asked: sizes if asked == threads else ())
        monkeypatch.setattr(measure, "_best_us", machine.best_us)
        monkeypatch.setattr(measure, "_best_us_of", machine.best_us_of)
        monkeypatch.setattr(measure, "_function", machine.function)
        return machine

    return begin


def test_the_rates_of_a_machine_are_found(simulated) -> None:
    """Caches of which half is too little to measure are left out."""
    machine = simulated((64 << 10, 512 << 10, 2 * MIB, 16 * MIB))
    rates, _ = measure.measure_machine()
    assert (rates.threads, rates.source) == (THREADS, "measured")
    assert {(one.dtype, one.instruction_set): round(one.gflops, 6) for one in rates.compute} == {
        ("float32", "avx512"): 400.0,
        ("float32", "avx2"): 150.0,
    }
    assert (rates.start_us, rates.fork_us) == (pytest.approx(START), pytest.approx(FORK))
    found = [(level.nbytes, round(level.read, 6), round(level.copied, 6)) for level in rates.levels]
    assert found == [
        (512 << 10, 100.0, 120.0),
        (2 * MIB, 100.0, 120.0),
        (16 * MIB, 60.0, 80.0),
        (None, 30.0, 20.0),
    ]
    assert rates.exchanged == pytest.approx(40.0) and machine.bound == [MIB // 4] * 2
    found = [(one.kernel, round(one.gflops, 6)) for one in rates.kernels]
    assert found == [("jit in groups", 240.0), ("grouped in groups", 90.0)]
    assert machine.threads == [1, THREADS] * 3
    assert machine.moved[:4] == [(name, half) for half in (256 << 10, MIB) for name in ("read", "copied")]


@pytest.mark.parametrize(
    ("sizes", "far"),
    [((), 64 * MIB), ((8 * MIB,), 64 * MIB), ((32 * MIB,), 128 * MIB), ((2 * MIB, 96 * MIB), 256 * MIB)],
)
def test_memory_is_four_times_the_last_cache_within_limits(simulated, sizes, far) -> None:
    machine = simulated(sizes)
    measure.measure_machine()
    assert machine.moved[-2:] == [("read", far), ("copied", far)]


def test_threads_that_exchange_faster_than_the_nearest_cache_copies_do_not(simulated) -> None:
    simulated((2 * MIB,), exchanged=500.0)
    assert measure.measure_machine()[0].exchanged == pytest.approx(120.0)


@pytest.mark.parametrize(
    ("nearest", "exchanged"),
    [(512 << 10, MIB // 4), (4 * MIB, MIB // 4), (8 * MIB, MIB // 2), (32 * MIB, 2 * MIB)],
)
def test_threads_exchange_a_quarter_of_what_a_core_holds(simulated, nearest, exchanged) -> None:
    machine = simulated((nearest,))
    measure.measure_machine()
    assert machine.bound == [exchanged] * 2


def test_one_thread_exchanges_nothing(simulated) -> None:
    simulated((2 * MIB,), threads=1)
    rates, _ = measure.measure_machine()
    assert (rates.threads, rates.exchanged) == (1, rates.levels[0].copied)
    assert rates.fork_us == 0.0


@pytest.mark.parametrize(("switches", "disturbed"), [(39, False), (40, False), (41, True)])
def test_more_than_twenty_switches_a_second_disturb(simulated, monkeypatch, switches, disturbed) -> None:
    simulated((2 * MIB,))
    clock, counts = iter((5.0, 7.0)), iter((100, 100 + switches))
    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    used = SimpleNamespace(
        RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(ru_nivcsw=next(counts), who=who)
    )
    monkeypatch.setattr(measure, "resource", used)
    assert measure.measure_machine()[1] is disturbed


@pytest.mark.parametrize("disturbed", [False, True])
def test_time_that_other_guests_take_disturbs(simulated, monkeypatch, disturbed) -> None:
    simulated((2 * MIB,))
    used = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda _who: SimpleNamespace(ru_nivcsw=0))
    monkeypatch.setattr(measure, "resource", used)
    monkeypatch.setattr(measure, "StolenTime", lambda: SimpleNamespace(disturbs=lambda: disturbed))
    assert measure.measure_machine()[1] is disturbed


def test_groups_that_no_kernel_takes_have_no_rate(simulated, monkeypatch) -> None:
    machine = simulated((2 * MIB,))
    machine.error = "unimplemented"
    assert list(measure._in_groups()) == []


def test_a_start_is_half_of_a_run_at_most(simulated) -> None:
    """Whatever disturbed the measurement of the start: the rate is at most twice that with no start."""
    simulated((2 * MIB,))
    assert measure._copied(MIB, 1e6) == pytest.approx(2 * measure._copied(MIB, 0.0))
    exchanged, whole = measure._exchanged(MIB, THREADS, 1e6), measure._exchanged(MIB, THREADS, 0.0)
    assert exchanged is not None and whole is not None and exchanged == pytest.approx(2 * whole)


def test_no_level_is_slower_than_one_further_away() -> None:
    levels = [MemoryLevel(1, 50.0, 20.0), MemoryLevel(2, 60.0, 10.0), MemoryLevel(None, 40.0, 30.0)]
    assert list(measure._slower_outwards(levels)) == [
        MemoryLevel(1, 60.0, 30.0),
        MemoryLevel(2, 60.0, 30.0),
        MemoryLevel(None, 40.0, 30.0),
    ]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [10.0]
    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    yield now


@pytest.mark.parametrize(
    ("takes", "least", "runs"),
    [
        ([9.0, 9.0, 0.5, 0.25, 0.75], 0.25, 5),  # two to warm up, three at least
        ([9.0, 9.0] + [0.03125] * 3 + [0.015625] * 9, 0.015625, 7),  # as many as there are seconds for
    ],
)
def test_the_best_run_counts_and_nothing_before_it(clock, monkeypatch, takes, least, runs) -> None:
    order: list[str] = []
    left = iter(takes)
    monkeypatch.setattr(measure, "_SECONDS", 0.125)

    def run() -> None:
        order.append("run")
        clock[0] += next(left)

    def before() -> None:
        order.append("before")

    assert measure._best_us_of(run, before) == pytest.approx(1e6 * least)
    assert order == ["before", "run"] * runs
