"""How long the workers of TVM's thread pool keep a processor after a kernel: briefly, or as a user says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WATCH = """
import os, sys, time
from pathlib import Path
import numpy as np
import tvm
from tvm import relax
from tvm.script import relax as R

def threads():
    return {path.name: (path / "stat").read_text().rpartition(")")[2].split()[0]
            for path in Path("/proc/self/task").iterdir()}

builder = relax.BlockBuilder()
x = relax.Var("x", R.Tensor((64, 64), "float32"))
with builder.function("main", [x]):
    with builder.dataflow():
        y = builder.emit_output(relax.op.cumsum(x, axis=1))
    builder.emit_func_output(y)
main = relax.VirtualMachine(tvm.compile(builder.get(), "llvm"), tvm.cpu())["main"]
before = threads()
main(tvm.runtime.tensor(np.ones((64, 64), "float32")))
(worker,) = threads().keys() - before.keys()
limit = time.monotonic() + float(sys.argv[1])
while threads()[worker] == "R" and time.monotonic() < limit:
    time.sleep(0.01)
print(threads()[worker], os.environ["TVM_THREAD_POOL_SPIN_COUNT"], flush=True)
os._exit(0)  # a pool that still spins would be waited for
"""


@pytest.mark.parametrize(
    "given, seconds, expected",
    [(None, 600.0, ["S", "100"]), ("2000000000", 0.5, ["R", "2000000000"])],
    ids=["by default", "as the user says"],
)
def test_a_worker_sleeps_soon(given: str | None, seconds: float, expected: list[str]) -> None:
    """The state of the one worker of a pool of two threads: running, or asleep."""
    environment = {name: value for name, value in os.environ.items() if name != "TVM_THREAD_POOL_SPIN_COUNT"}
    environment["TVM_NUM_THREADS"] = "2"
    if given is not None:
        environment["TVM_THREAD_POOL_SPIN_COUNT"] = given
    command = [sys.executable, "-c", WATCH, str(seconds)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert answer.stdout.split() == expected, answer.stderr
