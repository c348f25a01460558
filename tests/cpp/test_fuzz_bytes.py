"""Runs ``fuzz_bytes``, built with sanitizers, on programs of every kind."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core import codec
from tvm_mxplan.core import program as ir
from tvm_mxplan.core.dims import Expr, Symbol

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "byoc"))
from program_builder import Builder, random  # noqa: E402


def seeds() -> list[bytes]:
    n = Symbol("n")
    b = Builder("fuzz")
    b.symbols.append(ir.SymbolBinding("n", 0, 0))
    src = b.reorder(b.input((n, 16, 9, 9)), "aBcd16b")
    conv, pool = b.local((n, 16, 9, 9), "aBcd16b"), b.local((n, 16, 4, 4), "aBcd16b")
    post_ops = [ir.EltwisePostOp("relu", 0.0, 0.0), ir.BinaryPostOp("add", src)]
    attrs = ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    winograd = replace(attrs, algorithm="winograd_f4")
    weights = b.constant(random(16, 16, 3, 3))
    b.step(attrs, post_ops, src=src, weights=weights, dst=conv)
    b.step(winograd, post_ops, src=src, weights=weights, dst=b.local((n, 16, 9, 9), "aBcd16b"))
    b.step(ir.Pooling("max", (2, 2), (2, 2), (0, 0), (1, 1)), src=conv, dst=pool)
    whole = b.local((n, 32, Expr("//", Expr("+", 4, Expr("*", n, 4)), Expr("+", n, 1)), 4))
    b.step(ir.Concat(1), src=[pool, pool], dst=whole)
    b.step(ir.Pad((0, 0, 1, 1), 1.0), src=whole, dst=b.local((n, 32, 6, 6)))
    b.step(ir.Slice((0, 3, 1, 1)), src=whole, dst=b.local((n, 4, 2, 2), alias_of=conv))
    b.step(ir.Shuffle(1, 4), src=whole, dst=b.output((n, 32, 4, 4)))
    small = Builder("small")
    product = small.local((3, 5))
    small.step(ir.MatMul(), src=small.input((3, 4)), weights=small.constant(random(4, 5)), dst=product)
    small.step(ir.Softmax("softmax", 1), src=product, dst=small.output((3, 5)))
    return [
        codec.encode(b.build()),
        codec.encode(small.build()),
        bytes(small.module()["mxplan.save"]()),
    ]


@pytest.mark.slow
def test_damaged_bytes(address_sanitized: Path, tmp_path: Path) -> None:
    library.load()
    files = []
    for i, seed in enumerate(seeds()):
        files.append(tmp_path / f"seed{i}")
        files[-1].write_bytes(seed)
    rounds = str(int(np.clip(int(os.environ.get("MXPLAN_FUZZ_ROUNDS", "30000")), 1, 10**9)))
    program = address_sanitized / "fuzz_bytes"
    answer = subprocess.run([program, rounds, *files], capture_output=True, text=True, cwd=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
