"""Estimated times: what counts, what does not, and how times go with sizes, threads and fusion."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from costs_by_hand import rates
from tvm import relax, tirx

from tvm_mxplan.passes.costs.kept_times import KeptCall, kept_calls
from tvm_mxplan.passes.region import NameOperators

MACHINE = rates(gflops=400.0, gbytes=50.0, cache_bytes=0, narrow=0.93)


def tensor(*shape: object, dtype: str = "float32") -> relax.TensorType:
    return relax.TensorType(shape, dtype)


def kept(build, *types: relax.TensorType, threads: int = 2) -> dict[str, float | None]:
    """Microseconds of the operators that ``build`` makes of variables of these types, by their names."""
    return {call.operator: call.us for call in calls(build, *types, threads=threads)}


def calls(build, *types: relax.TensorType, threads: int = 2) -> list[KeptCall]:
    variables = [relax.Var(f"x{at}", kind) for at, kind in enumerate(types)]
    builder = relax.BlockBuilder()
    with builder.function("main", variables):
        with builder.dataflow():
            result = builder.emit_output(build(builder.emit, *variables))
        builder.emit_func_output(result)
    return kept_calls(NameOperators()(builder.get()), threads, MACHINE)


def test_a_simple_kernel_takes_what_moving_its_bytes_takes():
    found = kept(lambda emit, x: emit(relax.op.negative(x)), tensor(1000, 1000))
    moved = 2 * 4 * 1e6 / MACHINE.memory.copied / 1e3
    assert found["negative_0"] == pytest.approx(moved, rel=0.02)


def test_bytes_go_by_the_element_type():
    short, long = (
        kept(lambda emit, x: emit(relax.op.negative(x)), tensor(1000, 1000, dtype=dtype))["negative_0"]
        for dtype in ("int8", "int64")
    )
    assert long == pytest.approx(8 * short, rel=0.1)


def test_work_goes_by_the_cycles_of_one_core():
    """The peak is that of all threads: with more of them, one core has less of it."""
    one, four = (
        kept(lambda emit, x: emit(relax.op.erf(x)), tensor(300, 300), threads=threads)["erf_0"]
        for threads in (1, 4)
    )
    assert four == pytest.approx(4 * one, rel=0.05)
    moving = kept(lambda emit, x: emit(relax.op.negative(x)), tensor(300, 300), threads=4)["negative_0"]
    assert four > 10 * moving


def test_a_product_takes_its_multiply_adds():
    def product(size: int) -> float | None:
        square = tensor(size, size)
        return kept(lambda emit, a, b: emit(relax.op.matmul(a, b)), square, square)["matmul_0"]

    assert product(400) == pytest.approx(8 * product(200), rel=0.05)


def test_what_is_done_to_constants_takes_nothing():
    def build(emit, x):
        turned = emit(relax.op.permute_dims(relax.const(np.ones((300, 200), "float32"))))
        return emit(relax.op.add(x, emit(relax.op.exp(turned))))

    found = kept(build, tensor(200, 300))
    assert (found["permute_dims_0"], found["exp_0"]) == (0.0, 0.0)
    assert found["add_0"] > 0


def test_views_take_nothing():
    found = kept(lambda emit, x: emit(relax.op.reshape(emit(relax.op.floor(x)), (600,))), tensor(20, 30))
    assert found["reshape_0"] == 0.0 and found["floor_0"] > 0


def test_a_chain_that_tvm_fuses_moves_its_ends_only():
    def chain(emit, x):
        return emit(relax.op.negative(emit(relax.op.abs(emit(relax.op.floor(x))))))

    shape = tensor(1000, 1000)
    single = kept(lambda emit, x: emit(relax.op.negative(x)), shape)["negative_0"]
    found = kept(chain, shape)
    assert found["floor_0"] == pytest.approx(single / 2, rel=0.05)
    assert found["negative_0"] == pytest.approx(single / 2, rel=0.05)
    assert 0 < found["abs_0"] < single / 2, "only its arithmetic"


def test_what_is_read_twice_is_stored():
    def twice(emit, x):
        rounded = emit(relax.op.floor(x))
        return emit(relax.op.add(emit(relax.op.negative(rounded)), emit(relax.op.abs(rounded))))

    def once(emit, x):
        return emit(relax.op.add(emit(relax.op.negative(emit(relax.op.floor(x)))), x))

    shape = tensor(1000, 1000)
    assert kept(twice, shape)["floor_0"] > kept(once, shape)["floor_0"]


def test_symbols_stand_for_plausible_numbers_and_unknown_shapes_for_none():
    batch = tirx.Var("batch", "int64")
    assert kept(lambda emit, x: emit(relax.op.exp(x)), tensor(batch, 3, 200, 200))["exp_0"] > 0
    unknown = relax.TensorType(dtype="float32", ndim=2)
    assert kept(lambda emit, x: emit(relax.op.exp(x)), unknown) == {"exp_0": None}


def test_a_kernel_of_a_users_own_takes_its_loads_and_stores():
    def build(emit, x):
        return emit(relax.BlockBuilder.current().call_te(tvm.topi.nn.softmax, x))

    small, large = (kept(build, tensor(size, 100))["call_tir_0"] for size in (100, 400))
    assert large == pytest.approx(4 * small, rel=0.1)


def test_regions_are_left_out():
    builder = relax.BlockBuilder()
    x = relax.Var("x", tensor(10))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.floor(x))
        builder.emit_func_output(result)
    mod = builder.get()
    assert [call.kind for call in kept_calls(mod, 1, MACHINE)] == ["floor"]
    mod["main"] = mod["main"].with_attr("Codegen", "mxplan_onednn")
    assert kept_calls(mod, 1, MACHINE) == []
