"""Numbers of elementwise functions: zeros where there are none, so that equal steps are equal kernels."""

from __future__ import annotations

import pytest
import tvm
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.region import BuildPrograms, PartitionRegions
from tvm_mxplan.passes.region.attached import program_of, regions


@pytest.mark.parametrize(
    ("call", "attrs"),
    [
        ("R.nn.relu(x)", ir.Eltwise("relu", 0.0, 0.0)),
        ("R.nn.gelu(x)", ir.Eltwise("gelu_erf", 0.0, 0.0)),
        ("R.nn.gelu_tanh(x)", ir.Eltwise("gelu_tanh", 0.0, 0.0)),
        ("R.nn.silu(x)", ir.Eltwise("swish", 1.0, 0.0)),
        ("R.tanh(x)", ir.Eltwise("tanh", 0.0, 0.0)),
        ("R.sigmoid(x)", ir.Eltwise("logistic", 0.0, 0.0)),
        ("R.abs(x)", ir.Eltwise("abs", 0.0, 0.0)),
        ("R.sqrt(x)", ir.Eltwise("sqrt", 0.0, 0.0)),
        ("R.square(x)", ir.Eltwise("square", 0.0, 0.0)),
        ("R.negative(x)", ir.Eltwise("linear", -1.0, 0.0)),
        ("R.nn.leakyrelu(x, 0.25)", ir.Eltwise("relu", 0.25, 0.0)),
    ],
)
def test_functions_of_one_tensor(call: str, attrs: ir.Eltwise) -> None:
    backend, text = OneDNN(), 'x: R.Tensor((2, 3, 4, 5), "float32")'
    lines = ["@R.function", f"def main({text}):", "    with R.dataflow():", f"        y = {call}"]
    function = tvm.script.from_source("\n".join([*lines, "        R.output(y)", "    return y", ""]))
    passes = [
        relax.transform.Normalize(),
        DispatchOperators(preference_of([backend])),
        PartitionRegions(),
        BuildPrograms(backend),
    ]
    mod = tvm.transform.Sequential(passes)(tvm.IRModule({"main": function}))
    ((_, region),) = regions(mod, "mxplan_onednn")
    (step,) = program_of(region).steps
    assert step.attrs == attrs
