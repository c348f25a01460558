"""Relax modules without dataflow blocks: as good as those with them, on every target."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan
from tvm_mxplan.report.report import Report

SHAPE = (2, 3, 9, 7)
OPTIONS = {"cache": "disabled", "machine": "default"}
SOURCE = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(
        x: R.Tensor((2, 3, 9, 7), "float32"), w: R.Tensor((3, 3, 3, 3), "float32"), deep: R.Tensor((), "bool")
    ):
        a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
        b = R.nn.relu(a)
        told = R.print(b, format="{}")
        if deep:
            c = R.nn.conv2d(b, w, padding=[1, 1, 1, 1])
            d = R.tanh(c)
        else:
            d = R.nn.relu(R.negative(b))
        return R.nn.conv2d(d, w, padding=[1, 1, 1, 1])
"""


def straight(blocks: bool) -> tvm.IRModule:
    """One convolution and a ReLU."""
    builder = relax.BlockBuilder()
    x, w = (
        relax.Var(name, relax.TensorType(s, "float32")) for name, s in (("x", SHAPE), ("w", (8, 3, 3, 3)))
    )
    with builder.function("main", [x, w]):
        with builder.dataflow():
            product = builder.emit(relax.op.nn.conv2d(x, w, padding=1))
            out = builder.emit_output(relax.op.nn.relu(product))
        builder.emit_func_output(out)
    return builder.get() if blocks else relax.transform.ToNonDataflow()(builder.get())


def weights(count: int) -> dict[str, np.ndarray]:
    return {"w": np.random.default_rng(2).standard_normal((count, 3, 3, 3), np.float32) / 5}


def taken(report: Report) -> list[list[str]]:
    return [[step.kind for step in region.steps] for region in report.regions]


def test_a_module_without_blocks_is_planned_as_with_them() -> None:
    without, with_them = (
        tvm_mxplan.compile(straight(blocks), "dnnl, llvm", params=weights(8), options=OPTIONS)
        for blocks in (False, True)
    )
    assert not any(isinstance(one, relax.DataflowBlock) for one in straight(False)["main"].body.blocks)
    assert without.report.offloaded == 1.0
    assert taken(without.report) == taken(with_them.report)
    assert without.report.memory == with_them.report.memory
    x = np.random.default_rng(1).standard_normal(SHAPE, np.float32)
    np.testing.assert_array_equal(*(ex(x)[0].numpy() for ex in (without, with_them)))


@pytest.mark.parametrize("deep", [True, False])
def test_branches_and_calls_with_effects_between_cut_regions(
    deep: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    mod = tvm.script.from_source(SOURCE)
    ex = tvm_mxplan.compile(mod, "dnnl, llvm", params=weights(3), options=OPTIONS)
    assert ex.report.offloaded == 1.0 and len(ex.report.regions) >= 3
    x = np.random.default_rng(1).standard_normal(SHAPE, np.float32)
    stock = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    arrays = [tvm.runtime.tensor(one) for one in (x, weights(3)["w"], np.array(deep))]
    expected = stock["main"](*arrays).numpy()
    told = capfd.readouterr().out
    found = ex(x, np.array(deep))[0].numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert told and capfd.readouterr().out.count("[") == told.count("["), (
        "the call with an effect was made once"
    )
