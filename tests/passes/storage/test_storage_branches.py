"""StorageRewrite over branches of an `if`: bytes are shared where one branch alone is taken."""

from __future__ import annotations

import numpy as np
import relax_programs as rp
import tvm
from storage_bodies import X
from storage_runs import ROW, same_numbers
from tvm import relax

BRANCHES = X + ', c: R.Tensor((), "bool"), d: R.Tensor((), "bool")'


def check_branches(body: str, dataflow: bool = False) -> tvm.IRModule:
    mod = rp.lower(rp.parse(body, BRANCHES), dataflow)
    decisions = [(np.array(c), np.array(d)) for c in (True, False) for d in (True, False)]
    rewritten = same_numbers(mod, *((rp.normal(0, 4, 6), *decision) for decision in decisions))
    assert rp.total_bytes(rewritten) <= rp.total_bytes(relax.transform.StaticPlanBlockMemory()(mod))
    assert len(rp.calls_to(rewritten["main"], "relax.memory.alloc_storage")) <= 1
    return rewritten


def test_branches_share_bytes_and_their_result_is_one_place() -> None:
    """Each branch needs two tensors; the join joins, so two are enough for both."""
    body = """
if c:
    a = R.permute_dims(x)
    b = R.permute_dims(a)
    r = R.permute_dims(b)
else:
    e = R.flip(x, 0)
    f = R.permute_dims(e)
    g = R.permute_dims(f)
    r = R.permute_dims(g)
return R.permute_dims(r)
"""
    assert rp.storages(check_branches(body)) == [128 + ROW]


def test_bytes_are_free_in_the_branch_that_does_not_read_them() -> None:
    body = """
a = R.permute_dims(x)
if c:
    r = R.permute_dims(a)
else:
    e = R.permute_dims(x)
    f = R.flip(e, 0)
    r = R.permute_dims(f)
return R.exp(r)
"""
    rewritten = check_branches(body)
    assert rp.storages(rewritten) == [128 + ROW]


def test_tensors_read_after_the_join_live_across() -> None:
    body = """
a = R.permute_dims(x)
if c:
    b = R.exp(x)
    r = R.tanh(b)
else:
    e = R.flip(x, 0)
    f = R.permute_dims(e)
    r = R.permute_dims(f)
return R.add(R.permute_dims(a), r)
"""
    check_branches(body)


def test_nested_branches_and_pairs() -> None:
    body = """
a = R.exp(x)
if c:
    b = R.tanh(a)
    if d:
        p = R.negative(b)
        q = (p, b)
    else:
        p = R.abs(b)
        q = (a, p)
    r = q
else:
    e = R.flip(a, 0)
    r = (e, a)
s = r[0]
t = R.add(s, r[1])
return (R.exp(t), R.negative(t))
"""
    check_branches(body)
    check_branches(body, dataflow=True)


def test_one_result_that_both_branches_may_return() -> None:
    body = """
a = R.exp(x)
b = R.tanh(x)
if c:
    r = a
else:
    r = b
e = R.permute_dims(x)
f = R.permute_dims(e)
g = R.add(r, f)
return R.add(g, b)
"""
    check_branches(body)
