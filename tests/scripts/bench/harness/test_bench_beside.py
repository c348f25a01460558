"""Processes beside a benchmark: they compute while it runs, and end with it, however it ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.harness.beside import busy_processes  # noqa: E402

KILLED = """
import os, signal
from _bench.harness.beside import busy_processes
with busy_processes(2) as started:
    print(*started, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def seconds(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_they_compute_inside_and_are_gone_outside():
    with busy_processes(2) as started:
        assert len(started) == 2
        wait(lambda: all(seconds(pid) > 0.2 for pid in started))
    assert not any(map(runs, started))


def test_none_is_none():
    with busy_processes(0) as started:
        assert started == ()


def test_they_end_with_a_benchmark_that_is_killed():
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
    done = subprocess.run([sys.executable, "-c", KILLED], env=environment, capture_output=True, text=True)
    started = list(map(int, done.stdout.split()))
    assert done.returncode < 0 and len(started) == 2
    wait(lambda: not any(map(runs, started)))
