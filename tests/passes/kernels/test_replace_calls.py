"""Calls replaced in every Relax function of a module, operands first."""

from __future__ import annotations

import tvm
from tvm import relax, tirx

from tvm_mxplan.passes.kernels.replace_calls import replace_calls

TEXT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.exp(R.tanh(a))
            R.output(b)
        return b
    @R.function
    def other(x: R.Tensor((2, 3), "float32")):
        return R.exp(x)
"""


def names(function: relax.Function) -> list[str]:
    found: list[str] = []
    relax.analysis.post_order_visit(
        function, lambda e: found.append(str(e.op.name)) if isinstance(e, relax.Call) else None
    )
    return found


def test_calls_are_replaced_in_every_function() -> None:
    mod, seen = tvm.script.from_source(TEXT), []

    def to_sine(_builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
        seen.append(str(call.op.name))
        return relax.op.sin(call.args[0]) if str(call.op.name) == "relax.exp" else None

    made = replace_calls(mod, to_sine)
    assert names(made["main"]) == ["relax.sin", "relax.tanh", "relax.sin"]
    assert names(made["other"]) == ["relax.sin"]
    assert sorted(seen) == ["relax.exp"] * 3 + ["relax.tanh"]
    assert names(mod["main"]).count("relax.exp") == 2, "the module that came is left as it was"


def test_without_a_replacement_nothing_changes() -> None:
    mod = tvm.script.from_source(TEXT)
    tvm.ir.assert_structural_equal(replace_calls(mod, lambda _builder, _call: None), mod)


def test_numbers_of_shapes_that_are_computed_are_no_calls_of_operators() -> None:
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        extent = tirx.if_then_else(n > 8, tirx.floordiv(n, 2), n)
        ones = builder.emit(relax.op.ones([extent], "float32"))
        builder.emit_func_output(builder.emit(relax.op.exp(ones)))
    mod, seen = builder.get(), []
    replace_calls(mod, lambda _builder, call: seen.append(str(call.op.name)))
    assert seen == ["relax.ones", "relax.exp"]
    tvm.ir.assert_structural_equal(replace_calls(mod, lambda _builder, _call: None), mod)
