"""TVM's pipeline with passes of ours in it: which, where, and when TVM's own are left out."""

from __future__ import annotations

import pytest
import relax_programs as rp
import tvm
from tvm import relax, tirx
from tvm.relax.backend.cpu_generic import pipeline

from tvm_mxplan.passes.storage.tvm_pipeline import _legalize_passes, default_pipeline, finalize_passes

LLVM = tvm.target.Target("llvm")
STOCK = [one.info.name for one in pipeline.legalize_passes(LLVM)]
LAST = [one.info.name for one in relax.pipeline.finalize_passes(LLVM)]


def names(passes: list[tvm.transform.Pass]) -> list[str]:
    return [one.info.name for one in passes]


def module(conditional: bool) -> tvm.IRModule:
    """A slice as long as an input, or as half of one that is long enough."""
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n], "float32"))
    end = tirx.if_then_else(n > 8, tirx.floordiv(n, 2), n) if conditional else tirx.floordiv(n, 2)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.broadcast_to(relax.op.zeros([1], "float32"), [end]))
        builder.emit_func_output(y)
    return builder.get()


def kernel_with_a_condition() -> tvm.IRModule:
    n = tirx.Var("n", "int64")
    body = tirx.Evaluate(tirx.if_then_else(n > 8, tirx.floordiv(n, 2), n))
    return tvm.IRModule({"kernel": tirx.PrimFunc([n], body).with_attr("global_symbol", "kernel")})


@pytest.mark.parametrize(
    "mod", [module(conditional=False), kernel_with_a_condition()], ids=["main", "kernel"]
)
def test_scalars_go_into_shapes_right_before_functions_are_fused(mod: tvm.IRModule) -> None:
    found = names(_legalize_passes(LLVM, mod))
    at = STOCK.index("FuseTIR")
    assert found == [*STOCK[:at], "FusedScalarsInShapes", *STOCK[at:]]


def test_shapes_with_conditions_are_not_fused() -> None:
    assert names(_legalize_passes(LLVM, module(conditional=True))) == [
        name for name in STOCK if name not in ("FuseOps", "FuseTIR")
    ]


def test_the_planner_stands_where_tvms_does() -> None:
    at = LAST.index("StaticPlanBlockMemory")
    assert names(finalize_passes(LLVM)) == [*LAST[:at], "StorageRewrite", *LAST[at + 1 :]]
    assert names(finalize_passes(LLVM, reuse=False)) == [*LAST[:at], *LAST[at + 1 :]]


def test_other_targets_have_tvms_own() -> None:
    opencl = tvm.target.Target("opencl")
    expected = relax.pipeline.finalize_passes(opencl)
    assert names(finalize_passes(opencl)) == names(expected)
    assert default_pipeline(opencl).info.name == relax.get_default_pipeline(opencl).info.name


def test_the_plan_is_told_and_the_order_is_taken_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_mxplan.passes.storage import tvm_pipeline

    ordered: list[tvm.IRModule] = []
    told: list[object] = []

    def smaller_order(mod: tvm.IRModule, lower: tvm.transform.Pass) -> tvm.IRModule:
        ordered.append(mod)
        return lower(mod)

    monkeypatch.setattr(tvm_pipeline, "smaller_order", smaller_order)
    lines = "a = R.permute_dims(x)\nb = R.flip(a, 0)\nreturn R.permute_dims(b)"
    mod = rp.parse(lines, 'x: R.Tensor((4, 6), "float32")')
    for reuse, reorder, orders, plans in (
        (True, False, 0, 1),
        (True, True, 1, 1),
        (False, True, 0, 0),
    ):
        ordered.clear()
        told.clear()
        default_pipeline(LLVM, reuse, reorder, lambda *plan: told.append(plan))(mod)
        assert (len(ordered), len(told)) == (orders, plans)


@tvm.instrument.pass_instrument
class Ran:
    """Names of the passes that run."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def run_before_pass(self, _mod: tvm.IRModule, info: tvm.transform.PassInfo) -> None:
        self.names.append(str(info.name))


def test_by_default_storage_is_planned_in_the_order_that_there_is_and_empty_sums_are_defined() -> None:
    ran = Ran()
    with tvm.transform.PassContext(instruments=[ran]):
        default_pipeline(LLVM)(rp.parse("return R.permute_dims(x)", 'x: R.Tensor((4, 6), "float32")'))
    assert {"StorageRewrite", "EmptyReductions", "FusedScalarsInShapes"} <= set(ran.names)
    assert not {"StaticPlanBlockMemory"} & set(ran.names)
