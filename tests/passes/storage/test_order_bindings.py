"""OrderBindings: the IR it writes, that it is taken only where plans get smaller, and numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import relax_programs as rp
import tvm
from tvm import relax, tirx
from tvm.relax.backend.cpu_generic import pipeline

import tvm_mxplan
from tvm_mxplan.passes.storage import order_bindings as pass_file
from tvm_mxplan.passes.storage.order_bindings import OrderBindings, _bytes_of, order_bindings, smaller_order
from tvm_mxplan.passes.storage.relax_sizes import Bounds
from tvm_mxplan.passes.storage.storage_plan import plan_storage
from tvm_mxplan.passes.storage.tvm_pipeline import default_pipeline

X = 'x: R.Tensor((4, 6), "float32")'
WIDE = 64 * 6 * 4  # bytes of one wide value
BRANCHES = """
with R.dataflow():
    a = R.call_dps_packed("widen", (x,), out_ty=R.Tensor((64, 6), "float32"))
    b = R.call_dps_packed("widen", (x,), out_ty=R.Tensor((64, 6), "float32"))
    c = R.call_dps_packed("narrow", (a,), out_ty=R.Tensor((6,), "float32"))
    d = R.call_dps_packed("narrow", (b,), out_ty=R.Tensor((6,), "float32"))
    e = R.call_dps_packed("add", (c, d), out_ty=R.Tensor((6,), "float32"))
    R.output(e)
return e
"""


def callees(mod: tvm.IRModule) -> list[str]:
    """Names of the external functions, in the order of the text."""
    names = []
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, tvm.ir.Call) and isinstance(binding.value.args[0], relax.ExternFunc):
                names.append(str(binding.value.args[0].global_symbol))
    return names


def lower(mod: tvm.IRModule) -> tvm.IRModule:
    with rp.TARGET:
        return tvm.transform.Sequential(pipeline.dataflow_lower_passes(rp.TARGET))(mod)


def height(lowered: tvm.IRModule) -> int:
    return plan_storage(lowered, lowered.get_global_var("main")).plan.height


def test_branches_run_one_after_the_other():
    mod = rp.parse(BRANCHES, X)
    assert callees(mod) == ["widen", "widen", "narrow", "narrow", "add"]
    ordered = OrderBindings()(mod)
    assert callees(ordered) == ["widen", "narrow", "widen", "narrow", "add"]
    assert height(lower(mod)) >= 2 * WIDE
    assert height(lower(ordered)) == height(smaller_order(mod, lower)) < WIDE + 3 * 64


def test_a_block_that_writes_in_place_stays():
    """Order keeps more there than definitions and uses."""
    mod = rp.parse(BRANCHES, X)
    ordered = OrderBindings()(mod)
    assert callees(ordered) != callees(mod)
    (block,) = mod["main"].body.blocks
    narrow = block.bindings[2]
    inplace = relax.Call(
        tvm.ir.Op.get("relax.call_tir_inplace"), narrow.value.args, None, narrow.value.ty_args
    )
    bindings = [*block.bindings[:2], relax.VarBinding(narrow.var, inplace), *block.bindings[3:]]
    assert pass_file._is_free(block) and not pass_file._is_free(relax.DataflowBlock(bindings))


def test_what_gains_nothing_stays():
    """One wide value at a time already."""
    mod = OrderBindings()(rp.parse(BRANCHES, X))
    assert order_bindings(mod) is mod


@pytest.mark.parametrize(
    "pinned",
    [
        's = R.match_cast(x, R.Tensor((4, 6), "float32"))',
        'cls = R.call_dps_packed("other", (x,), out_ty=R.Tensor((4, 6), "float32"))',
    ],
)
def test_blocks_that_define_shapes_stay(pinned):
    mod = rp.parse(BRANCHES.replace("dataflow():\n", f"dataflow():\n    {pinned}\n"), X)
    assert (order_bindings(mod) is mod) == ("match_cast" in pinned)


def test_an_order_that_makes_the_plan_larger_is_not_taken(monkeypatch):
    mod = rp.parse(BRANCHES, X)
    backwards = OrderBindings()(mod)
    monkeypatch.setattr(pass_file, "order_bindings", lambda _mod: mod)
    assert height(smaller_order(backwards, lower)) == height(lower(backwards)) < height(lower(mod))


def test_plans_of_all_functions_are_compared_with_their_regions(monkeypatch):
    """Kernels are no functions that are planned."""
    mod = rp.lower(rp.parse(BRANCHES + "", X))
    mod["other"] = mod["main"].with_attr("global_symbol", "other")
    kernel = tirx.PrimFunc([], tirx.Evaluate(0))
    mod["kernel"] = kernel.with_attr("global_symbol", "kernel")
    asked = []

    def plan(_lowered, gvar, regions):
        asked.append((gvar.name_hint, regions))
        return SimpleNamespace(plan=SimpleNamespace(height=10 ** len(asked)))

    monkeypatch.setattr(pass_file, "regions_of", lambda lowered: {"region": lowered})
    monkeypatch.setattr(pass_file, "plan_storage", plan)
    assert pass_file._planned_bytes(mod) == 110
    assert sorted(name for name, _ in asked) == ["main", "other"]
    assert all(regions == {"region": mod} for _, regions in asked)


def test_views_keep_their_tensors_alive():
    """Views of both wide values are read last, so no order is better."""
    body = BRANCHES.replace(
        "    R.output(e)\nreturn e",
        """    v = R.reshape(a, R.shape([384]))
    w = R.reshape(b, R.shape([384]))
    f = R.call_dps_packed("last", (e, v, w), out_ty=R.Tensor((6,), "float32"))
    R.output(f)
return f""",
    )
    mod = rp.parse(body, X)
    assert "reshape" in str(mod)
    assert order_bindings(mod) is mod


def network() -> tvm.IRModule:
    """Three wide branches of TVM's own kernels that are summed up at the end."""
    rng = np.random.default_rng(0)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((32, 16), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            weights = [relax.const(rng.standard_normal((16, 256)).astype("float32")) for _ in range(3)]
            wide = [builder.emit(relax.op.cumsum(relax.op.matmul(x, w), axis=1)) for w in weights]
            narrow = [builder.emit(relax.op.sum(one, axis=1)) for one in wide]
            total = builder.emit(relax.op.add(relax.op.add(narrow[0], narrow[1]), narrow[2]))
            out = builder.emit_output(total)
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize("target", ["llvm", "dnnl, llvm"])
def test_numbers_stay_and_bytes_fall(target):
    kept = tvm_mxplan.compile(network(), target)
    ordered = tvm_mxplan.compile(network(), target, options={"order": "memory"})
    x = rp.normal(0, 32, 16)
    np.testing.assert_array_equal(ordered(x)[0].numpy(), kept(x)[0].numpy())


def test_the_pipeline_takes_the_smaller_order():
    heights: list[int] = []
    for reorder in (False, True):
        with rp.TARGET:
            lower = default_pipeline(
                rp.TARGET, True, reorder, lambda _name, plan: heights.append(plan.plan.height)
            )
            lower(network())
    assert heights[1] < heights[0]


def test_bytes_of_all_results_at_multiples_of_64() -> None:
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((2,), "float32"))

    def call(*types: relax.Type) -> tvm.ir.Call:
        return relax.call_dps_packed("f", relax.Tuple([x]), list(types) if len(types) > 1 else types[0])

    small, large = relax.TensorType((3,), "float32"), relax.TensorType((5, 33), "float16")
    inside = relax.TensorType((n, 4), "float32")
    for types, nbytes in (
        ((small,), 64),
        ((large,), 384),
        ((small, large, small), 512),
        ((inside, small), 64),
        ((relax.TensorType((16,), "float32"),), 64),
        ((relax.TensorType((0, 4), "float32"),), 0),
    ):
        assert _bytes_of(call(*types), Bounds([])) == nbytes
