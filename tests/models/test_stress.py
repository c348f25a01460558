"""Eight threads, each with a virtual machine of its own, on one module: right answers, no growth."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import tvm

import tvm_mxplan
from tvm_mxplan.testing import zoo

THREADS, CALLS = 8, 10_000


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_eight_machines_on_one_module(tmp_path: Path) -> None:
    model = zoo.load(zoo.TINY)
    compiled = tvm_mxplan.compile(model)
    assert compiled.report.regions
    compiled.export(tmp_path / "tiny.so")
    ex = tvm_mxplan.load(tmp_path / "tiny.so")
    inputs = [zoo.random_inputs(model, seed=seed) for seed in range(THREADS)]
    expected = [compiled(**each)[0].numpy() for each in inputs]
    wrong: list[int] = []
    finished = threading.Barrier(THREADS + 1)
    sizes: list[int] = []

    def work(number: int) -> None:
        tensors = {name: tvm.runtime.tensor(array) for name, array in inputs[number].items()}

        def call(count: int) -> None:
            for _ in range(count):
                if not np.array_equal(ex(**tensors)[0].numpy(), expected[number]):
                    wrong.append(number)

        try:
            for count in (CALLS // THREADS // 5, CALLS // THREADS):  # the first part is for memory to settle
                call(count)
                finished.wait()
        except BaseException:
            finished.abort()  # nobody waits for a thread that failed
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        finished.wait()
        sizes.append(resident())
    for thread in threads:
        thread.join()
    assert not wrong
    assert sizes[1] - sizes[0] < 4 * 2**20
    (region,) = [module for module in ex.module.imports[0].imports if module.kind == "mxplan_onednn"]
    (specialization,) = json.loads(str(region["mxplan.stats"]()))["specializations"]
    assert specialization["calls"] == CALLS + CALLS // 5
    assert 1 <= specialization["contexts"] <= THREADS
