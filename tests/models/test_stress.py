"""Eight threads, each with a virtual machine of its own, on one module: right answers, no growth."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import tvm
from own_process import in_own_process, resident

import tvm_mxplan
from tvm_mxplan.testing import zoo

THREADS, CALLS = 8, 10_000


@dataclass(frozen=True)
class Outcome:
    """Calls from several threads: those with a wrong answer, bytes by which memory grew, and counts."""

    wrong: set[int]
    growth: int
    contexts: int
    calls: int


def call_from_threads(folder: Path) -> Outcome:
    """Calls a library of TINY from threads with inputs of their own, whose answers one thread took before."""
    model = zoo.load(zoo.TINY)
    compiled = tvm_mxplan.compile(model)
    assert compiled.report.regions
    compiled.export(folder / "tiny.so")
    ex = tvm_mxplan.load(folder / "tiny.so")
    inputs = [zoo.random_inputs(model, seed=seed) for seed in range(THREADS)]
    expected = [compiled(**each)[0].numpy() for each in inputs]
    wrong: set[int] = set()
    finished = threading.Barrier(THREADS + 1)
    sizes: list[int] = []

    def work(number: int) -> None:
        tensors = {name: tvm.runtime.tensor(array) for name, array in inputs[number].items()}

        def call(count: int) -> None:
            for _ in range(count):
                if not np.array_equal(ex(**tensors)[0].numpy(), expected[number]):
                    wrong.add(number)

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
    (region,) = [module for module in ex.module.imports[0].imports if module.kind == "mxplan_onednn"]
    (specialization,) = json.loads(str(region["mxplan.stats"]()))["specializations"]
    return Outcome(wrong, sizes[1] - sizes[0], specialization["contexts"], specialization["calls"])


@pytest.mark.slow
def test_eight_machines_on_one_module(tmp_path: Path) -> None:
    outcome = in_own_process(call_from_threads, tmp_path)
    assert not outcome.wrong
    assert outcome.calls == CALLS + CALLS // 5
    assert 1 <= outcome.contexts <= THREADS
    assert outcome.growth < 2**20  # 100 bytes a call
