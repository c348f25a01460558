"""A named batch as functions of sizes, run on the CPU: numbers of the function that has the batch by name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from relax_programs import TARGET, normal, parse

from tvm_mxplan.byoc import registry
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.options import Options
from tvm_mxplan.passes.sizes import NamedBatch, named_batch
from tvm_mxplan.passes.sizes.named_batch import sizes_of
from tvm_mxplan.pipeline import Given, build_pipeline
from tvm_mxplan.report.recorder import Recorder

OPTIONS = Options(machine="default", verify="off", cache="disabled")
PARAMETERS = 'x: R.Tensor(("n", 3, 14, 10), "float32"), w: R.Tensor((17, 3, 3, 3), "float32")'
APART = """
n = T.int64()
a = R.nn.conv2d(x, w, padding=1)
b = R.nn.relu(a)
c = R.mean(b, axis=[2, 3])
d = R.reshape(b, (n * 17, 140))
e = R.sum(w, axis=[1, 2, 3])
return (c, d, e)
"""
MEET = """
n = T.int64()
a = R.nn.conv2d(x, w, padding=1)
b = R.nn.relu(a)
c = R.subtract(b, R.mean(b, axis=[0], keepdims=True))
return c
"""


def bound(body: str) -> tvm.IRModule:
    mod = parse(body, PARAMETERS)
    return relax.transform.BindParams("main", {"w": normal(1, 17, 3, 3, 3)})(mod)


def built(
    mod: tvm.IRModule, batch: NamedBatch, recorder: Recorder | None = None
) -> tuple[relax.VirtualMachine, tvm.IRModule]:
    given = Given(recorder=recorder, batch=batch, machine=default_rates())
    planned = build_pipeline([registry.planner("onednn")], OPTIONS, TARGET, given)(mod)
    return relax.VirtualMachine(relax.build(planned, TARGET, relax_pipeline=None), tvm.cpu()), planned


def results(vm: relax.VirtualMachine, rows: int) -> Sequence[tvm.runtime.Tensor]:
    found = vm["main"](tvm.runtime.tensor(normal(2 + rows, rows, 3, 14, 10)))
    return [found] if hasattr(found, "numpy") else list(found)


@pytest.mark.slow
def test_calls_of_all_sizes_have_the_numbers_of_one_function() -> None:
    mod, recorder = bound(APART), Recorder()
    batch = named_batch(mod, {"n": (0, 6)}, (3,))
    assert batch is not None and batch.sizes == (1, 2, 3, 4, 6) and batch.meet == ""
    vm, _ = built(mod, batch, recorder)
    assert len(recorder.report.regions) == 5  # each size has one
    assert {region.steps[-1].shape[0] for region in recorder.report.regions} >= {"1", "2", "3", "4", "6"}
    stock = relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu())
    for rows in (1, 5, 2, 6, 3, 4):
        for one, expected in zip(results(vm, rows), results(stock, rows), strict=True):
            assert one.shape == expected.shape
            np.testing.assert_allclose(one.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
    assert [one.shape[0] for one in results(vm, 0)] == [0, 0, 17]
    with pytest.raises(Exception, match=r"a batch of 7; .*n: plans for 1, 2, 3, 4, 6; .*batch_sizes"):
        results(vm, 7)


def test_one_arena_serves_all_sizes() -> None:
    mod, recorder = bound(APART.replace("return (c, d, e)", "return R.nn.softmax(c)")), Recorder()
    batch = named_batch(mod, {"n": (1, 4)})
    assert batch is not None
    _, planned = built(mod, batch, recorder)
    heights = {one.region: one.height for one in recorder.report.memory if one.region.startswith("main_")}
    assert list(heights) == ["main_n_1", "main_n_2", "main_n_4"] and len(set(heights.values())) == 3
    taken = set()
    for gvar, function in planned.functions.items():
        if isinstance(function, relax.Function) and gvar.name_hint in heights:
            made = [one for one in str(function).splitlines() if "arena" in one and "alloc_storage" in one]
            assert len(made) == 1
            taken.add(made[0].split("R.shape([")[1].split("]")[0])
    assert {int(one) for one in taken} == {max(heights.values())}


def test_rows_that_meet_run_in_their_own_sizes_alone() -> None:
    mod = bound(MEET)
    batch = named_batch(mod, {"n": (1, 5)})
    assert batch is not None and batch.meet == "mean: it sums over the batch"
    vm, _ = built(mod, batch)
    stock = relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu())
    for rows in (5, 1, 4, 2):
        (one,), (expected,) = results(vm, rows), results(stock, rows)
        np.testing.assert_allclose(one.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
    with pytest.raises(Exception, match=r"a batch of 3; .*no other sizes run, since rows meet at mean"):
        results(vm, 3)


def test_rows_of_zeros_do_not_reach_the_input_or_the_next_call() -> None:
    mod = bound(APART)
    batch = named_batch(mod, {"n": (1, 8)})
    assert batch is not None
    vm, _ = built(mod, batch)
    x = tvm.runtime.tensor(normal(3, 5, 3, 14, 10))
    before = x.numpy().copy()
    first = [one.numpy().copy() for one in vm["main"](x)]
    held = vm["main"](x)
    vm["main"](tvm.runtime.tensor(normal(4, 7, 3, 14, 10)))
    for one, expected in zip(held, first, strict=True):
        np.testing.assert_array_equal(one.numpy(), expected)  # a view of memory that is nobody else's
    np.testing.assert_array_equal(x.numpy(), before)


def test_sizes() -> None:
    assert sizes_of(1, 48) == (1, 2, 4, 8, 16, 32, 48)
    assert sizes_of(0, 1) == (1,) and sizes_of(5, 8, (6,)) == (6, 8) and sizes_of(7, 7) == (7,)


def test_what_cannot_be_made_of_sizes_is_said() -> None:
    mod = bound(APART)
    with pytest.raises(InvalidInputError, match=r'dimension n: .*bounds=\{"n": \(1, 32\)\}'):
        named_batch(mod, {})
    with pytest.raises(InvalidInputError, match=r"batch_sizes=\[9\]: dimension n is 1 to 8"):
        named_batch(mod, {"n": (1, 8)}, (9,))
    two = parse("y = R.exp(x)\nreturn y", 'x: R.Tensor(("n", "m"), "float32")')
    with pytest.raises(UnsupportedError, match=r"dimensions m, n: .*one named dimension"):
        named_batch(two, {"n": (1, 8), "m": (1, 8)})
    numbers = parse("y = R.exp(x)\nreturn y", 'x: R.Tensor((2, 3), "float32")')
    assert named_batch(numbers, {}) is None
    with pytest.raises(InvalidInputError, match="no dimension of the model has a name"):
        named_batch(numbers, {}, (2,))
