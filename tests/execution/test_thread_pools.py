"""Workers of TVM's thread pool keep a processor after a kernel only briefly, or as long as a user says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WATCH = """
import os, time
from pathlib import Path
import numpy as np
import tvm
from tvm import relax
from tvm.script import relax as R

def threads():
    return {path.name for path in Path("/proc/self/task").iterdir()}

def state_and_seconds(thread):
    fields = Path(f"/proc/self/task/{thread}/stat").read_text().rpartition(")")[2].split()
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

builder = relax.BlockBuilder()
x = relax.Var("x", R.Tensor((64, 64), "float32"))
with builder.function("main", [x]):
    with builder.dataflow():
        y = builder.emit_output(relax.op.cumsum(x, axis=1))
    builder.emit_func_output(y)
main = relax.VirtualMachine(tvm.compile(builder.get(), "llvm"), tvm.cpu())["main"]
before = threads()
main(tvm.runtime.tensor(np.ones((64, 64), "float32")))
(worker,) = threads() - before
state, seconds = state_and_seconds(worker)
while state == "R" and seconds < 0.2:
    time.sleep(0.01)
    state, seconds = state_and_seconds(worker)
print(state, os.environ["TVM_THREAD_POOL_SPIN_COUNT"], flush=True)
os._exit(0)  # a pool that still spins would be waited for
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "given, expected",
    [(None, ["S", "100"]), ("2000000000", ["R", "2000000000"])],
    ids=["by default", "as the user says"],
)
def test_a_worker_sleeps_soon(given: str | None, expected: list[str]) -> None:
    """The one worker of a pool of two threads falls asleep, or has spun for 0.2 s of a processor's time."""
    environment = {name: value for name, value in os.environ.items() if name != "TVM_THREAD_POOL_SPIN_COUNT"}
    environment["TVM_NUM_THREADS"] = "2"
    if given is not None:
        environment["TVM_THREAD_POOL_SPIN_COUNT"] = given
    command = [sys.executable, "-c", WATCH]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert answer.stdout.split() == expected, answer.stderr
