"""Scalars of fused functions go by the shape that such a function takes beside them."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_mxplan.passes.kernels import FusedScalarsInShapes

S, T = (tirx.Var(name, "int64") for name in "st")


def fused(steps: int | tirx.Expr, of: tirx.Expr) -> tvm.IRModule:
    """``arange(steps) + of``, as TVM fuses it, in a function of a matrix [s, t]."""
    builder = relax.BlockBuilder()
    matrix = relax.Var("x", relax.TensorType([S, T], "float32"))
    with builder.function("main", [matrix]):
        with builder.dataflow():
            row = builder.emit(relax.op.arange(0, steps, 1, "int64"))
            number = builder.emit(relax.op.reshape(relax.op.shape_to_tensor(relax.ShapeExpr([of])), []))
            output = builder.emit_output(relax.op.add(row, number))
        builder.emit_func_output(output)
    passes = relax.transform
    steps_of_tvm = [passes.LegalizeOps(), passes.AnnotateTIROpPattern(), passes.FuseOps()]
    return tvm.transform.Sequential(steps_of_tvm)(builder.get())


def parameters(mod: tvm.IRModule) -> list[str]:
    (function,) = (
        function for function in mod.functions.values() if function.attrs and "Primitive" in function.attrs
    )
    return [str(param.ty) for param in function.params]


def computed(mod: tvm.IRModule, data: np.ndarray) -> np.ndarray:
    mod = relax.transform.FuseTIR()(mod)
    assert any(gvar.name_hint.startswith("fused_") for gvar in mod.functions)
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    return vm["main"](tvm.runtime.tensor(data)).numpy()


def test_a_scalar_beside_a_shape_joins_it() -> None:
    before = fused(T, S)
    assert parameters(before) == ["int64", "R.Shape([t])"]
    after = FusedScalarsInShapes()(before)
    assert parameters(after) == ["R.Shape([t, s])"]
    relax.analysis.well_formed(after)
    np.testing.assert_array_equal(computed(after, np.zeros((3, 5), "float32")), np.arange(5) + 3)


def test_several_scalars_keep_their_order() -> None:
    after = FusedScalarsInShapes()(fused(T, S * 7 + S // 2))
    assert parameters(after) == ["R.Shape([t, s])"]
    np.testing.assert_array_equal(computed(after, np.zeros((5, 2), "float32")), np.arange(2) + 37)


def test_scalars_without_a_shape_are_left() -> None:
    before = fused(4, S)
    assert sorted(parameters(before)) == ['R.Tensor((4,), dtype="int64")', "int64"]
    tvm.ir.assert_structural_equal(FusedScalarsInShapes()(before), before)
    np.testing.assert_array_equal(computed(before, np.zeros((3, 5), "float32")), np.arange(4) + 3)


def test_only_functions_that_tvm_fused_are_changed() -> None:
    """Another one with attributes, a number and a shape stays as it is."""
    builder = relax.BlockBuilder()
    params = [
        relax.Var("number", tvm.ir.PrimType("int64")),
        relax.Var("shape", relax.ShapeType([T])),
        relax.Var("x", relax.TensorType([T], "float32")),
    ]
    with builder.function("main", params, attrs={"num_input": 1}):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(params[2])))
    before = builder.get()
    assert before["main"].attrs is not None
    tvm.ir.assert_structural_equal(FusedScalarsInShapes()(before), before)


def test_several_functions_are_changed_in_the_order_of_their_names() -> None:
    builder = relax.BlockBuilder()
    matrix = relax.Var("x", relax.TensorType([S, T], "float32"))
    with builder.function("main", [matrix]):
        with builder.dataflow():
            found = []
            for steps, of in ((T, S), (S * 2, T), (T + 1, S * 3)):
                row = builder.emit(relax.op.arange(0, steps, 1, "int64"))
                number = builder.emit(relax.op.reshape(relax.op.shape_to_tensor(relax.ShapeExpr([of])), []))
                found.append(builder.emit_output(relax.op.add(row, number)))
        builder.emit_func_output(relax.Tuple(found))
    passes = relax.transform
    fusing = [passes.LegalizeOps(), passes.AnnotateTIROpPattern(), passes.FuseOps()]
    after = FusedScalarsInShapes()(tvm.transform.Sequential(fusing)(builder.get()))
    changed = [f for f in after.functions.values() if f.attrs and "Primitive" in f.attrs]
    assert len(changed) == 3
    assert all(not isinstance(param.ty, tvm.ir.PrimType) for f in changed for param in f.params)
    vm = relax.VirtualMachine(tvm.compile(relax.transform.FuseTIR()(after), "llvm"), tvm.cpu())
    results = [one.numpy() for one in vm["main"](tvm.runtime.tensor(np.zeros((3, 5), "float32")))]
    for result, expected in zip(results, (np.arange(5) + 3, np.arange(6) + 5, np.arange(6) + 9), strict=True):
        np.testing.assert_array_equal(result, expected)
