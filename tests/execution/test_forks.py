"""A process that has computed on several threads is forked: parent and child compute on."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal
import numpy as np
import tvm_mxplan
from tvm_mxplan.testing.mlp import mlp

ex = tvm_mxplan.compile(mlp([256, 512, 256]), options={"cache": "disabled"})
assert ex.report.regions
x = np.ones((1, 256), "float32")
wanted = ex.run(x)[0]
for _ in range(2):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        same = np.array_equal(ex.run(x)[0], wanted)
        made = tvm_mxplan.compile(mlp([256, 512, 256]), options={"cache": "disabled"})
        os._exit(0 if same and np.array_equal(made.run(x)[0], wanted) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(ex.run(x)[0], wanted)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_calls_and_compilations_in_a_child(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
