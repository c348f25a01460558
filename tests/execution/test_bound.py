"""Bound calls: arrays read and written where they stand, and nothing made for each call."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from handed_on import numbers, passing_on

import tvm_mxplan
from tvm_mxplan.execution.calls import CallCounters
from tvm_mxplan.testing.mlp import mlp


@pytest.fixture(scope="module")
def ex():
    ex = tvm_mxplan.compile(mlp([8, 16, 4]))
    assert ex.report.regions
    return ex


@pytest.mark.parametrize("offset, copied, held", [(0, 0, 0), (4, 1, 1)])
def test_a_bound_call_reads_and_writes_the_arrays(ex, offset, copied, held):
    x, y = numbers(1, 8, offset=offset), np.empty((1, 4), "float32")
    bound = ex.bind({"x": x}, out=[y])
    for seed in range(4):
        x[:] = numbers(1, 8, seed=seed)
        assert bound()[0] is y
        np.testing.assert_array_equal(y, ex.run(x)[0])
    assert bound.counters() == CallCounters(calls=4, looked_at=0, copied=4 * copied, held=held, parted=0)


def test_without_out_each_call_makes_new_arrays(ex):
    x = numbers(1, 8)
    bound = ex.bind(x)
    (first,) = bound()
    kept = first.copy()
    x[:] = -x
    (second,) = bound()
    np.testing.assert_array_equal(first, kept)
    assert not np.array_equal(first, second) and bound.out is None


def test_outputs_may_be_inputs():
    ex = tvm_mxplan.compile(passing_on())
    x, y = numbers(3, 5), np.empty((3, 5), "float32")
    kept = x.copy()
    ex.bind(x, out=[y, x])()
    np.testing.assert_array_equal(y, kept)
    np.testing.assert_array_equal(x, np.maximum(kept, 0))


def test_threads_take_turns(ex):
    x, y = numbers(1, 8), np.empty((1, 4), "float32")
    (wanted,) = ex.run(x)
    bound = ex.bind(x, out=[y])
    threads = [threading.Thread(target=lambda: [bound() for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bound.counters().calls == 200
    np.testing.assert_array_equal(y, wanted)


def test_arrays_whose_memory_cannot_be_used_are_refused(ex):
    x, y = numbers(1, 8), np.empty((1, 4), "float32")
    constant = x.copy()
    constant.flags.writeable = False
    wide = np.repeat(x, 2, axis=1)[:, ::2]
    for wrong, text in [(constant, "got a read-only array"), (wide, "got an array with strides")]:
        with pytest.raises(tvm_mxplan.InvalidInputError, match=text):
            ex.bind(wrong)
    for wrong in (numbers(1, 9), x.astype("float64"), [x, x], {"z": x}):
        with pytest.raises(tvm_mxplan.InvalidInputError):
            ex.bind(wrong)
    with pytest.raises(tvm_mxplan.InvalidInputError, match="the array for 'y' has strides"):
        ex.bind(x, out=[np.empty((1, 8), "float32")[:, ::2]])
    both = tvm_mxplan.compile(passing_on())
    y = np.empty((3, 5), "float32")
    with pytest.raises(tvm_mxplan.InvalidInputError, match="shares memory with one for another result"):
        both.bind(numbers(3, 5), out=[y, y])


def test_a_model_that_is_watched_is_not_bound():
    ex = tvm_mxplan.compile(mlp([8, 16, 4]), options={"deterministic": True})
    with pytest.raises(tvm_mxplan.UnsupportedError, match="bind: a model for a GPU, deterministic"):
        ex.bind(numbers(1, 8))
    assert ex.run(numbers(1, 8))[0].shape == (1, 4)
