"""Runs of functions before and after StorageRewrite: the numbers stay."""

from __future__ import annotations

from collections.abc import Sequence

import relax_programs as rp
import tvm
from tvm import relax

from tvm_mxplan.passes.storage import StorageRewrite

ROW = 4 * 6 * 4  # bytes of one 4x6 tensor


def same_numbers(mod: tvm.IRModule, *runs: Sequence[rp.Array]) -> tvm.IRModule:
    """Numbers with StorageRewrite are those without reuse; gives what it wrote."""
    plain = rp.build(mod, None)
    for exec_mode in ("bytecode", "compiled"):
        planned = rp.build(mod, StorageRewrite(), exec_mode)
        for inputs in runs:
            rp.assert_same(rp.run(planned, *inputs), rp.run(plain, *inputs))
    return StorageRewrite()(mod)


def check(mod: tvm.IRModule, *inputs: rp.Array) -> tvm.IRModule:
    """As `same_numbers`; also TVM's planner gives them, and takes no fewer bytes."""
    rewritten = same_numbers(mod, inputs)
    stock = relax.transform.StaticPlanBlockMemory()
    rp.assert_same(rp.run(rp.build(mod, stock), *inputs), rp.run(rp.build(mod, None), *inputs))
    assert rp.total_bytes(rewritten) <= rp.total_bytes(stock(mod))
    return rewritten
