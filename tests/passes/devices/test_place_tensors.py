"""Tensors on two devices: the IR, and functions run with two CPUs as the devices, wherever bindings are."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import relax as R

from tvm_mxplan.core.machine import DeviceRates, default_rates
from tvm_mxplan.execution import machine
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
