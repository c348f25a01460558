"""The choice of fewer threads, on a machine that is made up: who shares it, and what calls take."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator

import pytest
from sanitized import PROGRAMS, RUNTIME

MS = 1_000_000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    built = tmp_path_factory.mktemp("thread_choice") / "thread_choice.so"
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", f"-iquote{RUNTIME}"]
    sources = [str(PROGRAMS / "thread_choice.cc"), str(RUNTIME / "region" / "thread_choice.cc")]
    subprocess.run(["g++", *flags, *sources, "-o", str(built)], check=True)
    made = ctypes.CDLL(str(built))
    made.make.restype = ctypes.c_void_p
    made.is_due.restype = ctypes.c_bool
    return made


class Machine:
    """Calls that one thread does in ``alone`` ns, on processors of which some are ``free``.

    With more threads than are free a call takes ``stalled`` times as long as on one, most of it waiting.
    """

    def __init__(self, library: ctypes.CDLL, threads: int, alone: int, stalled: float = 2.0) -> None:
        self.library, self.free, self.alone, self.stalled = library, threads, alone, stalled
        self.choice = ctypes.c_void_p(library.make(threads))
        self.now = 0

    @property
    def threads(self) -> int:
        return self.library.next(self.choice)

    def call(self) -> int:
        """One call; returns what it took."""
        threads = self.threads
        due = self.library.is_due(self.choice)
        waits = threads > self.free
        wall = int(self.alone * self.stalled) if waits else self.alone // threads
        self.now += wall
        if due:
            own = wall // 3 if waits else wall
            args = (ctypes.c_int64(self.now), ctypes.c_int64(wall), ctypes.c_int64(own))
            self.library.note(self.choice, threads, *args)
        return wall

    def calls(self, count: int) -> list[int]:
        return [self.call() for _ in range(count)]


@pytest.fixture
def make(library: ctypes.CDLL) -> Iterator[type[Machine]]:
    made: list[Machine] = []

    def machine(threads: int, alone: int, stalled: float = 2.0) -> Machine:
        made.append(Machine(library, threads, alone, stalled))
        return made[-1]

    yield machine  # type: ignore[misc]
    for one in made:
        library.drop(one.choice)


def test_a_quiet_machine_keeps_all_threads(make) -> None:
    machine = make(4, 8 * MS)
    machine.calls(1000)
    assert machine.threads == 4


def test_calls_that_wait_get_half_of_the_threads_until_they_no_longer_do(make) -> None:
    machine = make(8, 40 * MS)
    machine.calls(5)
    machine.free = 2
    machine.calls(40)
    assert machine.threads == 2


def test_a_few_calls_that_wait_change_nothing(make) -> None:
    machine = make(2, 20 * MS)
    for _ in range(50):
        machine.free = 1
        machine.calls(7)
        machine.free = 2
        machine.calls(1)
    assert machine.threads == 2


def test_all_threads_are_back_soon_after_the_others_went(make) -> None:
    machine = make(2, 2 * MS, 5.0)
    machine.free = 1
    machine.calls(20)
    assert machine.threads == 1
    machine.free = 2
    before = machine.now
    while machine.now < before + 200 * MS:
        machine.call()
    assert machine.threads == 2


def test_asking_again_takes_little_of_a_long_siege(make) -> None:
    machine = make(2, 2 * MS, 10.0)
    machine.free = 1
    machine.calls(100)
    taken = machine.calls(4000)
    assert sum(wall > 2 * MS for wall in taken) < 20
    assert sum(taken) < 1.1 * len(taken) * 2 * MS


def test_fewer_that_gain_nothing_are_given_up_and_asked_for_ever_less(make) -> None:
    """As where a call waits for something else than a processor."""
    machine = make(2, 20 * MS, 0.5)
    machine.free = 1
    taken = machine.calls(3000)
    assert machine.threads == 2
    assert sum(wall > 10 * MS for wall in taken) < 40


def test_short_calls_are_timed_now_and_then(make, library: ctypes.CDLL) -> None:
    machine = make(2, MS // 50)
    due = 0
    for _ in range(1600):
        due += library.is_due(machine.choice)
    assert due == 100
    machine.free, machine.stalled = 1, 1000.0  # 20 ms: one that is timed makes all be
    machine.calls(40)
    assert machine.threads == 1


def test_a_region_that_cannot_keeps_all(make, library: ctypes.CDLL) -> None:
    machine = make(4, 8 * MS)
    machine.free = 1
    machine.calls(9)
    assert machine.threads == 2
    library.stay(machine.choice)
    machine.calls(300)
    assert machine.threads == 4
