"""PartitionRegions: what goes into a region, how regions are named, and the reasons for the rest."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from dataflow_text import dataflow
from tvm import relax, te, tirx

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.region import PartitionRegions

NAME = "mxplan_onednn"


def partition(lines: str, **parameters: str) -> tuple[tvm.IRModule, dict[str, str]]:
    journal = Journal()
    return partitioned(dataflow(lines, **parameters), journal), journal.refused


def partitioned(mod: tvm.IRModule, journal: Journal | None = None) -> tvm.IRModule:
    return PartitionRegions()(DispatchOperators(preference_of([OneDNN()]), journal)(mod))


def region_names(mod: tvm.IRModule) -> list[str]:
    return sorted(
        gvar.name_hint
        for gvar, function in mod.functions.items()
        if function.attrs and function.attrs.get("Codegen") == NAME
    )


def composites(mod: tvm.IRModule, region: str) -> list[str]:
    """Composites of a region in order."""
    return [
        str(binding.value.attrs["Composite"]).removeprefix(f"{NAME}.")
        for block in mod[region].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Function)
    ]


def test_one_region_of_everything():
    mod, refused = partition("a = R.nn.relu(x)\nb = R.add(a, x)\ny = R.nn.max_pool2d(b, [2, 2], [2, 2])")
    assert region_names(mod) == [f"{NAME}_0"]
    assert composites(mod, f"{NAME}_0") == ["eltwise", "binary", "pooling"]
    assert not refused


def test_regions_around_what_is_left_are_numbered_in_order_of_use():
    mod, _ = partition("a = R.nn.relu(x)\nb = R.floor(a)\ny = R.exp(b)")
    assert region_names(mod) == [f"{NAME}_0", f"{NAME}_1"]
    assert composites(mod, f"{NAME}_0") == ["eltwise"]
    calls = [binding.value.op for binding in mod["main"].body.blocks[0].bindings]
    assert [getattr(op, "name_hint", getattr(op, "name", "")) for op in calls] == [
        f"{NAME}_0",
        "relax.floor",
        f"{NAME}_1",
    ]


def test_global_symbols_are_the_names():
    mod, _ = partition("a = R.nn.relu(x)\nb = R.floor(a)\ny = R.exp(b)")
    for name in region_names(mod):
        assert mod[name].attrs["global_symbol"] == name


def test_a_name_that_is_taken_is_left_alone():
    mod = dataflow("y = R.nn.relu(x)")
    taken = te.create_prim_func([te.placeholder((2,), name="x")])
    mod[f"{NAME}_0"] = taken.with_attr("global_symbol", f"{NAME}_0")
    mod = partitioned(mod)
    assert region_names(mod) == [f"{NAME}_1"]
    assert isinstance(mod[f"{NAME}_0"], tirx.PrimFunc)


def test_no_region_leaves_the_ir_unchanged():
    mod = dataflow("a = R.floor(x)\ny = R.sign(a)")
    tvm.ir.assert_structural_equal(partitioned(mod), mod)


def test_a_region_does_not_close_a_cycle_over_what_is_left():
    """y reads both a's region and, through floor, what a's region makes: two regions."""
    mod, _ = partition("a = R.nn.relu(x)\nb = R.floor(a)\ny = R.add(a, b)")
    assert region_names(mod) == [f"{NAME}_0", f"{NAME}_1"]
    relax.analysis.well_formed(mod)


@pytest.mark.parametrize(
    ("lines", "parameters", "composite"),
    [
        (
            'a = R.add(x, R.const(3.0, "float32"))\nb = R.clip(a, R.prim_value(0), R.prim_value(6))\n'
            'c = R.divide(b, R.const(6.0, "float32"))\ny = R.multiply(x, c)',
            'x: R.Tensor((2, 3), "float32")',
            "hardswish",
        ),
        ("a = R.sigmoid(x)\ny = R.multiply(a, x)", 'x: R.Tensor((2, 3), "float32")', "swish"),
        (
            "a = R.permute_dims(w)\ny = R.matmul(x, a)",
            'x: R.Tensor((2, 3), "float32"), w: R.Tensor((5, 3), "float32")',
            "matmul_transposed",
        ),
        (
            "a = R.reshape(x, (2, 3, 4, 5, 5))\nb = R.permute_dims(a, [0, 2, 1, 3, 4])\n"
            "y = R.reshape(b, (2, 12, 5, 5))",
            'x: R.Tensor((2, 12, 5, 5), "float32")',
            "channel_shuffle",
        ),
    ],
)
def test_operators_that_are_one_composite(lines, parameters, composite):
    mod, _ = partition(lines, parameters=parameters)
    assert composites(mod, f"{NAME}_0") == [composite]


def test_a_composite_whose_inside_is_read_elsewhere_is_its_parts():
    mod, _ = partition("a = R.sigmoid(x)\nb = R.multiply(a, x)\ny = R.add(a, b)")
    assert composites(mod, f"{NAME}_0") == ["eltwise", "binary", "binary"]


@pytest.mark.parametrize(
    ("lines", "parameters", "operator", "reason"),
    [
        ("y = R.nn.relu(x)", 'x: R.Tensor((2, 3), "float64")', "nn.relu", "element type float64"),
        ("y = R.nn.relu(x)", 'x: R.Tensor((), "float32")', "nn.relu", "rank 0"),
        ("y = R.nn.relu(x)", 'x: R.Tensor((0, 3), "float32")', "nn.relu", "empty tensor"),
        ("y = R.nn.relu(x)", 'x: R.Tensor((1,) * 7, "float32")', "nn.relu", "rank 7"),
        ("y = R.nn.relu(x)", 'x: R.Tensor(dtype="float32", ndim=2)', "nn.relu", "not known"),
        (
            "y = R.nn.avg_pool2d(x, [2, 2], layout='NHWC')",
            'x: R.Tensor((2, 4, 4, 3), "float32")',
            "nn.avg_pool2d",
            "layout NHWC",
        ),
        (
            "y = R.nn.max_pool2d(x, [3, 3], dilation=[2, 2])",
            'x: R.Tensor((2, 3, 8, 8), "float32")',
            "nn.max_pool2d",
            "reference code",
        ),
        ("y = R.mean(x, [0])", 'x: R.Tensor((2, 3), "float32")', "mean", "not the last ones"),
        (
            "y = R.nn.conv2d(x, w, data_layout='NHWC')",
            'x: R.Tensor((2, 4, 4, 3), "float32"), w: R.Tensor((5, 3, 3, 3), "float32")',
            "nn.conv2d",
            "data and kernel layouts",
        ),
    ],
)
def test_reasons(lines, parameters, operator, reason):
    parameters = parameters.replace("(1,) * 7", "(1, 1, 1, 1, 1, 1, 1)")
    mod, refused = partition(lines, parameters=parameters)
    assert region_names(mod) == []
    assert reason in refused[f"relax.{operator}"]


SEVERAL_FUNCTIONS = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 8), "float32")):
        with R.dataflow():
            a = R.nn.relu(x)
            y = R.exp(a)
            R.output(y)
        return y

    @R.function(private=True)
    def helper(x: R.Tensor((2, 8), "float32")):
        with R.dataflow():
            y = R.tanh(x)
            R.output(y)
        return y

    @R.function
    def second(x: R.Tensor((2, 8), "float32")):
        cls = Module
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.exp(a)
            R.output(b)
        c = cls.helper(b)
        y = cls.main(c)
        return y
"""


def test_every_function_gets_its_regions():
    """Also private ones, also one that calls ``main``; equal regions of two functions are two."""
    mod = partitioned(tvm.script.from_source(SEVERAL_FUNCTIONS))
    assert region_names(mod) == [f"{NAME}_{number}" for number in range(3)]
    calls = {}
    for gvar, function in mod.functions.items():
        if gvar.name_hint not in region_names(mod):
            bindings = [binding for block in function.body.blocks for binding in block.bindings]
            calls[gvar.name_hint] = [binding.value.op.name_hint for binding in bindings]
    assert calls == {
        "helper": [f"{NAME}_0"],
        "main": [f"{NAME}_1"],
        "second": [f"{NAME}_2", "helper", "main"],
    }
    assert composites(mod, f"{NAME}_1") == composites(mod, f"{NAME}_2") == ["eltwise", "exp"]
    symbols = {gvar.name_hint: function.attrs for gvar, function in mod.functions.items()}
    assert symbols["second"]["global_symbol"] == "second" and "global_symbol" not in symbols["helper"]


def test_composites_that_call_functions_of_their_own():
    """A kernel, say, by which a library's composite stands for code that TVM has."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([2, 8], "float32"))
    inner = relax.Var("inner", x.ty)
    with builder.function("composite", [inner], attrs={"Composite": f"{NAME}.row", "Primitive": True}):
        with builder.dataflow():
            row = builder.emit_output(
                builder.call_te(lambda data: te.compute((2, 8), lambda i, j: data[i, j] * 2), inner)
            )
        builder.emit_func_output(row)
    composite = builder.get().get_global_var("composite")
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.floor(builder.emit(relax.Call(composite, [x]))))
        builder.emit_func_output(y)
    before = builder.get()
    kernels = [gvar.name_hint for gvar, f in before.functions.items() if isinstance(f, tirx.PrimFunc)]
    mod = PartitionRegions()(before)
    assert region_names(mod) == [f"{NAME}_0"] and composites(mod, f"{NAME}_0") == ["row"]
    assert [gvar.name_hint for gvar, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)] == kernels
    relax.analysis.well_formed(mod)


def test_several_functions_run():
    library = tvm.compile(tvm.script.from_source(SEVERAL_FUNCTIONS), "llvm", relax_pipeline="mxplan")
    vm = relax.VirtualMachine(library, tvm.cpu())
    x = np.random.default_rng(0).standard_normal((2, 8), np.float32)
    once = np.exp(np.maximum(x, 0))
    np.testing.assert_allclose(vm["main"](tvm.runtime.tensor(x)).numpy(), once, rtol=1e-5)
    twice = np.exp(np.maximum(np.tanh(once), 0))
    np.testing.assert_allclose(vm["second"](tvm.runtime.tensor(x)).numpy(), twice, rtol=1e-5)


def test_a_module_without_main():
    text = SEVERAL_FUNCTIONS.replace("def main", "def first").replace("cls.main", "cls.first")
    assert len(region_names(partitioned(tvm.script.from_source(text)))) == 3
