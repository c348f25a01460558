"""An optimiser's change of one weight: every element, and the bits of the largest number written."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tvm import relax

import tvm_mxplan
from tvm_mxplan.operators.update import FORMULAS, all_finite, update

BITS = {"float32": "int32", "float64": "int64"}


@functools.cache
def compiled(shape: tuple[int, ...], dtype: str) -> tvm_mxplan.Executable:
    """``weight - grad``, and ``slot + 2 * grad`` beside it."""

    def formula(weight, grad, slots, _numbers):  # type: ignore[no-untyped-def]
        return weight - grad, [slots[0] + grad * 2]

    FORMULAS["by hand"] = formula
    builder = relax.BlockBuilder()
    params = [relax.Var(name, relax.TensorType(shape, dtype)) for name in "wgs"]
    with builder.function("main", params):
        made = builder.emit(update("by hand", params, []))
        builder.emit_func_output(made)
    return tvm_mxplan.compile(builder.get(), "llvm", options={"cache": "disabled"})


def run(weight: np.ndarray, grad: np.ndarray, slot: np.ndarray) -> list[np.ndarray]:
    found = compiled(weight.shape, str(weight.dtype))(weight, grad, slot)
    return [tensor.numpy() for tensor in found]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (16, 17, 31), (2, 4096), (4096 * 2 + 37,)])
def test_each_element_once_and_the_largest_bits(shape: tuple[int, ...], dtype: str) -> None:
    random = np.random.default_rng(len(shape))
    weight, grad, slot = (np.asarray(random.standard_normal(shape), dtype) for _ in range(3))
    new, kept, largest = run(weight, grad, slot)
    assert np.array_equal(new, weight - grad) and new.shape == shape
    assert np.allclose(kept, slot + 2 * grad, rtol=1e-6, atol=1e-6)
    assert all_finite(largest)
    most = max(np.abs(new).max(), np.abs(kept).max())
    assert largest.max() == np.asarray(most, dtype).view(BITS[dtype])


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("count", [1, 16, 37, 4096 + 16, 4096 * 2 + 37])
def test_one_number_that_is_none_is_seen_wherever_it_stands(count: int, value: float) -> None:
    whole = np.ones(count, "float32")
    for place in sorted({0, count // 2, count - 1, min(count - 1, 4096)}):
        broken = whole.copy()
        broken[place] = value
        assert not all_finite(run(broken, whole, whole)[-1]), place
        assert not all_finite(run(whole, whole, broken)[-1]), place
