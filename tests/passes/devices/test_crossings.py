"""Devices of bindings: the cheapest assignment, copies included, against all there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import relax as R

from tvm_mxplan.passes.annotations import CPU
from tvm_mxplan.passes.devices.crossings import place, tensors_read

GPU = "cuda"


@tvm.script.ir_module
class Rows:
    @R.function
    def main(table: R.Tensor((1000, 8), "float32"), at: R.Tensor((4,), "int64")):
        with R.dataflow():
            rows = R.take(table, at, axis=0)
            y = R.matmul(rows, R.permute_dims(rows))
            R.output(y)
        return y


def copying_us(nbytes: int) -> float:
    return 10 + nbytes / 100


def test_the_smallest_tensor_crosses() -> None:
    function = Rows["main"]

    def times(var: tvm.ir.Var, value: relax.Expr) -> dict[str, float]:
        return {CPU: 900.0, GPU: 5.0} if value.op.name == "relax.matmul" else {CPU: 5.0, GPU: 4.0}

    placed = {var.name: where for var, where in place(function, GPU, times, copying_us).items()}
    # The table has 32,000 bytes, its rows 128.
    assert placed["rows"] == CPU and placed["y"] == GPU


def test_what_one_device_runs_alone_stays_there() -> None:
    def times(var: tvm.ir.Var, value: relax.Expr) -> dict[str, float]:
        return {CPU: 1.0} if value.op.name == "relax.take" else {GPU: 1.0}

    placed = place(Rows["main"], GPU, times, copying_us)
    assert sorted(placed.values()) == [GPU, GPU, CPU]


@pytest.mark.parametrize("seed", range(12))
def test_no_assignment_costs_less(seed: int) -> None:
    random = np.random.default_rng(seed)
    builder = relax.BlockBuilder()
    shapes = [(int(extent),) for extent in random.integers(1, 60, 9)]
    x = relax.Var("x", relax.TensorType(shapes[0], "float32"))
    with builder.function("main", [x]):
        made: list[relax.Expr] = [x]
        with builder.dataflow():
            for shape in shapes[1:8]:
                picked = [made[int(at)] for at in random.integers(0, len(made), int(random.integers(1, 3)))]
                call = relax.call_dps_packed("f", relax.Tuple(picked), relax.TensorType(shape, "float32"))
                made.append(builder.emit(call))
            result = builder.emit_output(
                relax.call_dps_packed("f", relax.Tuple([made[-1]]), relax.TensorType((3,), "float32"))
            )
        builder.emit_func_output(result)
    function = builder.get()["main"]
    bindings = [one for block in function.body.blocks for one in block.bindings]
    known = {
        one.var: {CPU: float(random.uniform(0, 40)), GPU: float(random.uniform(0, 30))} for one in bindings
    }

    def total(devices: dict[tvm.ir.Var, str]) -> float:
        homes = {x: CPU, **devices}
        crossing = {
            (read, devices[one.var])
            for one in bindings
            for read in tensors_read(one.value)
            if homes[read] != devices[one.var]
        }
        if homes[function.body.body] != CPU:
            crossing.add((function.body.body, CPU))
        copies = sum(copying_us(4 * int(read.ty.shape.values[0])) for read, _ in crossing)
        return copies + sum(known[var][where] for var, where in devices.items())

    placed = place(function, GPU, lambda var, _: known[var], copying_us)
    least = min(
        total(dict(zip(known, chosen, strict=True)))
        for chosen in itertools.product((CPU, GPU), repeat=len(bindings))
    )
    assert total(placed) == pytest.approx(least)
