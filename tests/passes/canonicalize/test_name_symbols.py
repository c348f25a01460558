"""NameSymbols: two variables of one name get two names, wherever they are defined; all else stays."""

from __future__ import annotations

import tvm
from tvm import relax, tirx

from tvm_mxplan.passes.canonicalize import NameSymbols


def module(*names: str) -> tvm.IRModule:
    """Two inputs, and a matched length, whose first extents have these names; different variables all."""
    first, second, third = (tirx.Var(name, "int64") for name in names)
    x, y = (
        relax.Var(name, relax.TensorType([dim, 4], "float32")) for name, dim in (("x", first), ("y", second))
    )
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        with builder.dataflow():
            places = builder.match_cast(
                builder.emit(relax.op.nonzero(x)), relax.TensorType([2, third], "int64")
            )
            result = builder.emit_output(relax.op.concat([x, y], 0))
            length = builder.emit_output(relax.op.reshape(places, relax.ShapeExpr([third * 2])))
        builder.emit_func_output(relax.Tuple([result, length]))
    return builder.get()


def names(mod: tvm.IRModule) -> list[str]:
    return sorted(str(var.name) for var in relax.analysis.defined_symbolic_vars(mod["main"]))


def test_symbols_of_one_name():
    renamed = NameSymbols()(module("n", "n", "n"))
    assert names(renamed) == ["n", "n_1", "n_2"]
    tvm.ir.assert_structural_equal(renamed, module("a", "b", "c"))  # nothing else changed
    relax.analysis.well_formed(renamed)


def test_a_name_that_is_taken_is_not_given():
    assert names(NameSymbols()(module("n", "n_1", "n"))) == ["n", "n_1", "n_2"]


def test_ir_unchanged():
    mod = module("a", "b", "c")
    assert NameSymbols()(mod)["main"].same_as(mod["main"])


def test_kernels_are_no_functions_of_the_model():
    mod = module("n", "n", "n")
    kernel = tirx.PrimFunc([tirx.Var("n", "int64"), tirx.Var("n", "int64")], tirx.Evaluate(0))
    mod["kernel"] = kernel.with_attr("global_symbol", "kernel")
    renamed = NameSymbols()(mod)
    assert names(renamed) == ["n", "n_1", "n_2"]
    tvm.ir.assert_structural_equal(renamed["kernel"], mod["kernel"])
