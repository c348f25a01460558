"""Calls whose threads have to share a processor take fewer of them, and give the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

CALLS = """
import json, os
import numpy as np
import tvm_mxplan
from tvm import relax, tirx
from tvm_mxplan.byoc import registry
from tvm_mxplan.report.inspection import region_modules

def model():
    rng, builder = np.random.default_rng(0), relax.BlockBuilder()
    batch = tirx.Var("n", "int64") if os.environ["BATCH"] == "n" else 1
    x = relax.Var("x", relax.TensorType((batch, 64, 56, 56), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = x
            for at in range(4):
                weights = relax.const(rng.standard_normal((64, 64, 3, 3), np.float32) / 24)
                y = builder.emit(relax.op.nn.relu(builder.emit(relax.op.nn.conv2d(y, weights, padding=1))))
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    return builder.get()

executable = tvm_mxplan.compile(model(), "dnnl, llvm")
x = np.random.default_rng(1).standard_normal((1, 64, 56, 56), np.float32)

def call():
    (result,) = executable.run({"x": x})
    return np.array(result)

def calls():
    (region,) = region_modules(executable.module)
    made = registry.engine_of(region).stats(region)["specializations"]
    return {one["threads"]: one["calls"] for one in made}

first = call()
if os.environ["ONE_PROCESSOR"] == "1":
    one = min(os.sched_getaffinity(0))
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {one})
same = True
for _ in range(300):
    same = same and np.array_equal(call(), first)
    if calls().get(1, 0) > 5:
        break
print(json.dumps({"calls": calls(), "same": bool(same)}))
"""


def answer(**environment: str) -> dict:
    given = {name: value for name, value in os.environ.items() if name != "TVM_MXPLAN_FEWER_THREADS"}
    command = [sys.executable, "-c", CALLS]
    done = subprocess.run(
        command, env=given | {"OMP_NUM_THREADS": "2"} | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("batch", ["1", "n"])
def test_two_threads_on_one_processor_become_one(batch: str) -> None:
    found = answer(ONE_PROCESSOR="1", BATCH=batch)
    assert found["calls"]["2"] >= 8 and found["calls"]["1"] > 5
    assert found["same"]


@pytest.mark.slow
def test_the_variable_keeps_all_threads() -> None:
    found = answer(ONE_PROCESSOR="1", BATCH="1", TVM_MXPLAN_FEWER_THREADS="0")
    assert found == {"calls": {"2": 301}, "same": True}
