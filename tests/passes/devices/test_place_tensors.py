"""Tensors on two devices: the IR, and functions run with two CPUs as the devices, wherever bindings are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from dataflow_text import dataflow
from tvm import relax
from tvm.script import relax as R

from tvm_mxplan.core.machine import DeviceRates, default_rates
from tvm_mxplan.execution import machine
from tvm_mxplan.operators.on_device import ON_DEVICE, on_device
from tvm_mxplan.passes.annotations import CPU
from tvm_mxplan.passes.canonicalize.rewriter import is_call_to
from tvm_mxplan.passes.devices import Beside, PlaceTensors, place_tensors
from tvm_mxplan.passes.devices.place_tensors import COPY, callee
from tvm_mxplan.passes.storage.tvm_pipeline import default_pipeline

GPU = "cuda"
HOST = tvm.target.Target({"kind": "llvm"})


@tvm.script.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((5, 17), "float32"), w: R.Tensor((17, 9), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.matmul(a, w)
            c = R.add(b, R.const(np.full((9,), 0.75, "float32")))
            parts = R.split(c, [4], axis=1)
            d = R.nn.relu(parts[0])
            e = R.concat((parts[1], d), axis=1)
            f = R.reshape(e, (3, 15))
            g = R.nn.softmax(f, axis=1)
            h = R.multiply(R.reshape(c, (3, 15)), g)
            R.output(h, c)
        return h, c


class Played(Beside):
    """A CPU that is taken for another device: kernels for it run here."""

    @property
    def name(self) -> str:
        return GPU


def beside() -> Beside:
    target = tvm.target.Target({"kind": "llvm", "keys": ["second", "cpu"], "host": {"kind": "llvm"}})
    return Played(target, DeviceRates(default_rates(), 10.0, 12.0))


def placed(monkeypatch: pytest.MonkeyPatch, choice: dict[str, str]) -> tvm.IRModule:
    """``Net`` with bindings on the devices that a test names, those that are left out on the CPU."""

    def chosen(function: relax.Function, *_: object) -> dict[tvm.ir.Var, str]:
        bindings = [one for block in function.body.blocks for one in block.bindings]
        return {one.var: choice.get(one.var.name, CPU) for one in bindings}

    monkeypatch.setattr(place_tensors, "place", chosen)
    return PlaceTensors(beside(), default_rates(), ())(Net)


def calls(mod: tvm.IRModule) -> list[relax.Expr]:
    return [one.value for block in mod["main"].body.blocks for one in block.bindings]


def run(mod: tvm.IRModule, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Results of a module's function, with two CPUs as the devices."""
    target = beside().target if "vdevice" in mod.global_infos else None
    built = relax.build(default_pipeline(HOST, beside=target)(mod), HOST, relax_pipeline=None)
    found = machine.virtual_machine(built.mod, (1, 1))["main"](*map(tvm.runtime.tensor, arrays))
    return [one.numpy() for one in found]


ARRAYS = [np.random.default_rng(3).standard_normal(shape).astype("float32") for shape in ((5, 17), (17, 9))]


def test_a_tensor_crosses_once_however_many_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mod = placed(monkeypatch, {"b": GPU, "c": GPU})
    copies = [one for one in calls(mod) if callee(one) == COPY]
    # a, w and the constant there; c here, for split, reshape and the caller.
    assert len(copies) == 4
    on_gpu = [one.ty.vdevice for one in copies]
    assert [where is not None for where in on_gpu] == [True, True, True, False]
    (product,) = [one for one in calls(mod) if is_call_to(one, "matmul")]
    assert "second" in product.ty.vdevice.target.keys


def test_all_on_the_cpu_is_the_function_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    tvm.ir.assert_structural_equal(placed(monkeypatch, {})["main"], Net["main"])


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_the_same_wherever_bindings_are(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    bindings = [one.var.name for block in Net["main"].body.blocks for one in block.bindings]
    random = np.random.default_rng(seed)
    choice = {name: GPU for name in bindings if random.random() < 0.5}
    mod = placed(monkeypatch, choice)
    assert any(callee(one) == COPY for one in calls(mod))
    for ours, plain in zip(run(mod, ARRAYS), run(Net, ARRAYS), strict=True):
        np.testing.assert_array_equal(ours, plain)


class Region:
    """A runtime module: of a kind, of a region or of a kernel."""

    def __init__(self, kind: str, symbol: str, *functions: str) -> None:
        self.kind, self._symbol, self._functions = kind, symbol, functions

    def implements_function(self, name: str) -> bool:
        return name in self._functions

    def __getitem__(self, name: str) -> Callable[[], str]:
        assert name == "get_symbol"
        return lambda: self._symbol


def test_regions_of_the_devices_libraries_run_there_and_no_others() -> None:
    class Module:
        def __init__(self, **attrs: list[Region]) -> None:
            self.attrs = attrs

    modules = [
        Region("far", "one", "mxplan.program"),
        Region("far", "kernel"),
        Region("near", "two", "mxplan.program"),
    ]
    placing = PlaceTensors(beside(), default_rates(), ("far", "other"))
    assert placing._regions(Module(external_mods=modules)) == {"one"}
    assert placing._regions(Module()) == set()


def test_a_region_of_the_device_is_there_whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    mod = dataflow(
        'a = R.call_dps_packed("one", (x,), out_ty=R.Tensor((4, 8), "float32"))\n'
        'y = R.call_dps_packed("two", (a,), out_ty=R.Tensor((4, 8), "float32"))',
        parameters='x: R.Tensor((4, 8), "float32")',
    )
    region = tvm.get_global_func("runtime.CSourceModuleCreate")("", "c", ["one"], [])
    monkeypatch.setattr(place_tensors.region_module, "carries_program", lambda _module: True)
    monkeypatch.setattr(place_tensors.region_module, "symbol_of", lambda _module: "one")
    mod = mod.with_attr("external_mods", [region])
    before = mod["main"]
    after = PlaceTensors(beside(), default_rates(), (region.kind,))(mod)
    assert [callee(one) for one in calls(after)] == [COPY, "one", COPY, "two"]
    assert [one.ty.vdevice is not None for one in calls(after)] == [True, True, False, False]
    assert calls(after)[1].ty_args[0].vdevice.target.keys[0] == "second"
    assert mod["main"].same_as(before) and "vdevice" not in mod.global_infos
    assert [str(one.target.kind.name) for one in after.global_infos["vdevice"]] == ["llvm", "llvm"]


def by_hand(monkeypatch: pytest.MonkeyPatch, function: relax.Function, there: set[str]) -> relax.Function:
    def chosen(found: relax.Function, *_: object) -> dict[tvm.ir.Var, str]:
        bindings = [one for block in found.body.blocks for one in block.bindings]
        return {one.var: GPU if one.var.name in there else CPU for one in bindings}

    monkeypatch.setattr(place_tensors, "place", chosen)
    return PlaceTensors(beside(), default_rates(), ())(tvm.IRModule({"main": function}))["main"]


def test_results_and_what_is_outside_of_dataflow_keep_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            inner = builder.emit(relax.op.exp(x), "inner")
            outer = builder.emit_output(relax.op.tanh(inner), "outer")
        last = builder.emit(relax.op.sin(outer), "last")
        builder.emit_func_output(relax.Tuple([last, outer]))
    function = builder.get()["main"]
    after = by_hand(monkeypatch, function, {"outer"})
    names = [[one.var.name for one in block.bindings] for block in after.body.blocks]
    # inner crosses there inside; outer here behind the block, once for what reads it and the caller.
    assert names == [["inner", "copied", "outer"], ["copied1", "last"]]
    kinds = [type(one.var) for one in after.body.blocks[0].bindings]
    assert kinds == [relax.DataflowVar, relax.DataflowVar, tvm.ir.Var]


def test_a_parameter_that_crosses_inside_of_dataflow_is_read_outside_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            first = builder.emit_output(relax.op.exp(x), "first")
        last = builder.emit(relax.op.add(x, first), "last")
        builder.emit_func_output(last)
    after = by_hand(monkeypatch, builder.get()["main"], {"first", "last"})
    (copy,) = [one for one in after.body.blocks[0].bindings if callee(one.value) == COPY]
    assert not isinstance(copy.var, relax.DataflowVar)
    assert after.body.blocks[1].bindings[0].value.args[0].same_as(copy.var)


def test_shapes_are_cast_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    n = tvm.tirx.Var("n", "int64")
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        there = builder.emit(relax.op.exp(x), "there")
        cast = builder.match_cast(there, relax.TensorType((n, 8), "float32"))
        last = builder.emit(relax.op.tanh(cast), "last")
        builder.emit_func_output(last)
    after = by_hand(monkeypatch, builder.get()["main"], {"there", "last"})
    bindings = after.body.blocks[0].bindings
    (at,) = [at for at, one in enumerate(bindings) if isinstance(one, relax.MatchCast)]
    assert callee(bindings[at - 1].value) == COPY and bindings[at].value.same_as(bindings[at - 1].var)
    assert bindings[at].value.ty.vdevice is None and callee(bindings[at + 1].value) == COPY


def test_branches_read_their_operands_here(monkeypatch: pytest.MonkeyPatch) -> None:
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    c = relax.Var("c", relax.TensorType((), "bool"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, c]):
        there = builder.emit(relax.op.exp(x), "there")
        sides = []
        for operator in (relax.op.tanh, relax.op.sin):
            result = relax.Var("result", x.ty)
            block = relax.BindingBlock([relax.VarBinding(result, operator(there))])
            sides.append(relax.SeqExpr([block], result))
        chosen = builder.emit(relax.If(c, *sides), "chosen")
        last = builder.emit(relax.op.tanh(chosen), "last")
        builder.emit_func_output(last)
    after = by_hand(monkeypatch, builder.get()["main"], {"there", "last"})
    bindings = [one for block in after.body.blocks for one in block.bindings]
    values = [one.value for one in bindings]
    (at,) = [at for at, one in enumerate(values) if isinstance(one, relax.If)]
    assert callee(values[at - 1]) == COPY and values[at - 1].ty.vdevice is None
    for side in (values[at].true_branch, values[at].false_branch):
        (inside,) = side.blocks[0].bindings
        assert inside.value.args[0].same_as(bindings[at - 1].var) and inside.var.ty.vdevice is None
    assert callee(values[at + 1]) == COPY and values[at + 1].ty.vdevice is not None


def test_what_is_stated_to_be_there_is_a_copy_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            there = builder.emit(on_device(x, GPU, moved=True), "there")
            last = builder.emit_output(relax.op.tanh(there), "last")
        builder.emit_func_output(last)
    after = by_hand(monkeypatch, builder.get()["main"], {"there", "last"})
    values = [one.value for block in after.body.blocks for one in block.bindings]
    assert not any(ON_DEVICE.is_called(one) for one in values)
    assert [callee(one) == COPY for one in values if isinstance(one, relax.Call)] == [True, False, True]
