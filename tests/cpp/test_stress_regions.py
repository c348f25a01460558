"""Runs ``stress_regions``, built with each sanitizer: eight threads, right answers, no report.

oneDNN and the OpenMP library are not built with sanitizers.  With one OpenMP thread each call stays on its
own thread, and the thread sanitizer sees all that this runtime shares without false alarms about libgomp's
barriers.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "byoc"))
from program_builder import Builder, random  # noqa: E402

THREADS, CALLS = 8, 10_000


def container() -> bytes:
    """Two convolutions and a softmax with a symbolic batch: packed weights, an arena, a scratchpad."""
    n = Symbol("n")
    b = Builder("stress")
    b.symbols.append(ir.SymbolBinding("n", 0, 0))
    first = b.local((n, 32, 6, 6), "acdb")
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    src = b.reorder(b.input((n, 16, 6, 6)), "acdb")
    second = b.view(src, (n, 16, 6, 6), "acdb")  # what the sum adds
    relu = ir.EltwisePostOp("relu", 0.0, 0.0)
    b.step(attrs, [relu], src=src, weights=b.constant(random(32, 16, 3, 3)), dst=first)
    b.step(attrs, [ir.SumPostOp(1.0)], src=first, weights=b.constant(random(16, 32, 3, 3)), dst=second)
    plain = b.reorder(second, "abcd")
    b.step(ir.Softmax("softmax", 1), src=plain, dst=b.output((n, 16, 6, 6)))
    return bytes(b.module()["mxplan.save"]())


def stress(program: Path, folder: Path, calls: int, **options: str) -> None:
    library.load()
    file = folder / "region"
    file.write_bytes(container())
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **options}
    answer = subprocess.run(
        [program, str(THREADS), str(calls), file], capture_output=True, text=True, env=environment
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    done = re.search(r"(\d+) calls, 0 wrong, (\d+) packings, (\d+) shared", answer.stdout)
    assert done and int(done[1]) == calls and int(done[3]) > 0, answer.stdout


@pytest.mark.slow
def test_under_the_address_sanitizer(address_sanitized: Path, tmp_path: Path) -> None:
    stress(address_sanitized / "stress_regions", tmp_path, CALLS)


@pytest.mark.slow
def test_under_the_thread_sanitizer(thread_sanitized: Path, tmp_path: Path) -> None:
    stress(thread_sanitized / "stress_regions", tmp_path, CALLS, TSAN_OPTIONS="halt_on_error=1")
