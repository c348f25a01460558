"""Devices of bindings: the cheapest assignment, copies included, against all there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import relax as R

from tvm_mxplan.operators.on_device import on_device
from tvm_mxplan.passes.annotations import CPU
from tvm_mxplan.passes.devices.crossings import bytes_of, moved_bytes, place, tensors_read

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


def by_name(placed: dict[tvm.ir.Var, str]) -> dict[str, str]:
    return {var.name: where for var, where in placed.items()}


def hinted(moved: bool) -> relax.Function:
    """The product of two sums; the first is stated to be on the device."""
    x = relax.Var("x", relax.TensorType((4, 4), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            before = builder.emit(relax.op.add(x, x), "before")
            there = builder.emit(on_device(before, GPU, moved=moved), "there")
            other = builder.emit(relax.op.exp(x), "other")
            reads = builder.emit(relax.op.matmul(there, other), "reads")
            y = builder.emit_output(relax.op.tanh(reads), "y")
        builder.emit_func_output(y)
    return builder.get()["main"]


@pytest.mark.parametrize("moved", [False, True])
def test_a_hint_holds_for_what_reads_it_and_unless_it_is_moved_for_what_makes_it(moved: bool) -> None:
    function = hinted(moved)
    placed = by_name(place(function, GPU, lambda *_: {CPU: 0.0, GPU: 1e6}, copying_us))
    assert placed == {
        "before": CPU if moved else GPU, "there": GPU, "other": CPU, "reads": GPU, "y": CPU,
    }  # fmt: skip


def test_a_hint_is_passed_over_where_the_operator_cannot_run() -> None:
    placed = by_name(place(hinted(False), GPU, lambda *_: {CPU: 1.0}, copying_us))
    assert placed == {"before": CPU, "there": GPU, "other": CPU, "reads": CPU, "y": CPU}


def test_a_hint_outweighs_no_time_of_the_others() -> None:
    """Operators without a hint go where they take least."""

    def times(_var: tvm.ir.Var, value: relax.Expr) -> dict[str, float]:
        return {CPU: 1e6, GPU: 0.0} if value.op.name == "relax.exp" else {CPU: 0.0, GPU: 1e6}

    assert by_name(place(hinted(True), GPU, times, copying_us))["other"] == GPU


def test_a_cast_of_a_shape_is_the_cpus_and_nobody_asks_what_it_takes() -> None:
    x = relax.Var("x", relax.TensorType(None, "float32", ndim=1))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        cast = builder.match_cast(x, relax.TensorType((8,), "float32"))
        y = builder.emit(relax.op.exp(cast))
        builder.emit_func_output(y)
    asked: list[relax.Expr] = []

    def times(_var: tvm.ir.Var, value: relax.Expr) -> dict[str, float]:
        asked.append(value)
        return {GPU: 1.0}

    function = builder.get()["main"]
    assert list(place(function, GPU, times, copying_us).values()) == [CPU, GPU]
    assert [one.op.name for one in asked] == ["relax.exp"]


def test_a_tensor_of_unknown_shape_does_not_cross() -> None:
    x = relax.Var("x", relax.TensorType((8,), "float32"))
    for shape in ((8,), None):
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            kind = relax.TensorType(shape, "float32", ndim=1) if shape is None else x.ty
            first = builder.emit(relax.call_dps_packed("f", relax.Tuple([x]), x.ty))
            middle = builder.emit(relax.Call(relax.ExternFunc("g"), [first], ty_args=[kind]), "middle")
            last = builder.emit(relax.call_dps_packed("h", relax.Tuple([middle]), x.ty), "last")
            builder.emit_func_output(last)

        def times(var: tvm.ir.Var, _value: relax.Expr) -> dict[str, float]:
            return {CPU: 1e6, GPU: 0.0} if var.name == "last" else {CPU: 0.0, GPU: 5e5}

        placed = by_name(place(builder.get()["main"], GPU, times, copying_us))
        assert placed["middle"] == (GPU if shape is None else CPU)
        assert placed["last"] == GPU


def test_a_constant_is_the_cpus_and_crosses_once() -> None:
    """For two readers there and one here, the copy is one, and it is weighed."""
    table = relax.const(np.ones((1000,), "float32"))
    x = relax.Var("x", relax.TensorType((1000,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            a = builder.emit(relax.op.add(table, table), "a")
            b = builder.emit(relax.op.multiply(a, table), "b")
            y = builder.emit_output(relax.op.sum(b), "y")
        builder.emit_func_output(y)
    function = builder.get()["main"]
    # One copy of the table and one of a number: 50 + 10.04.
    for saved, device in ((30.5, GPU), (29.5, CPU)):

        def times(var: tvm.ir.Var, _value: relax.Expr, saved: float = saved) -> dict[str, float]:
            return {CPU: 0.0 if var.name == "y" else saved, GPU: 0.0}

        assert set(place(function, GPU, times, copying_us).values()) == {device}


def test_branches_read_what_they_do_not_bind() -> None:
    x, w = (relax.Var(name, relax.TensorType((4, 4), "float32")) for name in "xw")
    size = relax.Var("size", relax.ShapeType([4, 4]))
    condition = relax.Var("c", relax.TensorType((), "bool"))
    inner = relax.Var("inner", x.ty)
    block = relax.BindingBlock([relax.VarBinding(inner, relax.op.add(x, relax.op.zeros(size, "float32")))])
    branch = relax.If(condition, relax.SeqExpr([block], inner), relax.SeqExpr([], w))
    assert set(tensors_read(branch)) == {condition, x, w}
    function = relax.Function([x], relax.SeqExpr([], w), w.ty)
    assert tensors_read(function) == [w]


def test_reads_are_tensors_once_each_in_order() -> None:
    x, w = (relax.Var(name, relax.TensorType((4, 4), "float32")) for name in "xw")
    pair = relax.Var("pair", tvm.ir.TupleType([x.ty, relax.ShapeType(ndim=1)]))
    shapes = relax.Var("shapes", tvm.ir.TupleType([relax.ShapeType(ndim=1)]))
    number = relax.const(np.float32(1))
    tuple_ = relax.Tuple([w, number, x, w, pair, shapes, relax.ShapeExpr([2])])
    assert tensors_read(relax.op.add(w, x)) == [w, x]
    assert tensors_read(tuple_) == [w, number, x, pair]
    callee = relax.GlobalVar("f")
    assert tensors_read(relax.Call(callee, [x])) == [x]


def test_bytes_of_tensors_and_of_calls() -> None:
    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((4, 6), "float16"))
    assert bytes_of(x) == 48
    assert bytes_of(relax.Var("i", relax.TensorType((n, 3), "int64"))) % 24 == 0
    assert bytes_of(relax.Var("u", relax.TensorType(None, "float32", ndim=2))) is None
    assert bytes_of(relax.Var("s", relax.ShapeType([4]))) is None
    split = relax.BlockBuilder().normalize(relax.op.split(x, 3, 1))
    assert moved_bytes(relax.Var("parts", split.ty), split) == 48 + 48
    unknown = relax.Var("u", relax.TensorType(None, "float32", ndim=2))
    assert moved_bytes(x, relax.op.exp(unknown)) == 48
