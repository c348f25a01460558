"""Every kind of expression beside regions: regions are taken, and numbers are those of TVM alone."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_mxplan

X = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("float32")


@tvm.register_global_func("tests.twice", override=True)
def _twice(x: tvm.runtime.Tensor) -> tvm.runtime.Tensor:
    return tvm.runtime.tensor(x.numpy() * 2)


@tvm.register_global_func("tests.double", override=True)
def _twice_into(x: tvm.runtime.Tensor, *rest: object) -> None:
    rest[-1].copyfrom(x.numpy() * 2)


HEAD = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3, 8, 8), "float32")):
        {symbols}
        with R.dataflow():
            a = R.nn.relu(x)
            {lines}
            y = R.exp(b)
            R.output(y)
        return y
"""
SAME = 'R.Tensor((2, 3, 8, 8), "float32")'
UNKNOWN = 'R.Tensor(dtype="float32", ndim=4)'

LINES = {
    "external": f"b = R.call_dps_packed('tests.double', (a,), {SAME})",
    "external with numbers and texts": (
        f"b = R.call_dps_packed('tests.double', (a, R.prim_value(3), R.str('k'), R.dtype('int8')), {SAME})"
    ),
    "external that allocates": f"b = R.call_pure_packed('tests.twice', a, ty_args={SAME})",
    "match_cast to numbers": (
        f"c = R.call_pure_packed('tests.twice', a, ty_args={UNKNOWN})\nb = R.match_cast(c, {SAME})"
    ),
    "match_cast to a symbol": (
        f"c = R.call_pure_packed('tests.twice', a, ty_args={UNKNOWN})\n"
        "d = R.match_cast(c, R.Tensor((n, 3, 8, 8), 'float32'))\nb = R.nn.relu(d)"
    ),
    "two lengths found at run time": (
        "c = R.nonzero(R.floor(a))\nd = R.match_cast(c, R.Tensor((4, n), 'int64'))\n"
        "e = R.nonzero(R.ceil(a))\nf = R.match_cast(e, R.Tensor((4, m), 'int64'))\n"
        "g = R.exp(R.astype(d, 'float32'))\nh = R.exp(R.astype(f, 'float32'))\n"
        "b = R.negative(R.concat((g, h), axis=1))"
    ),
    "tuples": "t = (a, (x, a))\nu = t[1]\nb = R.add(u[0], t[0])",
    "a shape by name": "s = R.shape([2, 192])\nb = R.reshape(a, s)",
    "a number by name": "k = R.prim_value(2)\nb = R.add(a, a)",
    "another name": "k = a\nb = R.add(k, x)",
}


def module(lines: str) -> tvm.IRModule:
    symbols = "n = T.int64(); m = T.int64()" if "n)" in lines or "(n" in lines else "pass"
    text = HEAD.format(symbols=symbols, lines=lines.replace("\n", "\n            "))
    return tvm.script.from_source(text.replace("        pass\n", ""))


def answers(mod: tvm.IRModule, *inputs: np.ndarray) -> np.ndarray:
    machine = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    return machine["main"](*[tvm.runtime.tensor(array) for array in inputs]).numpy()


@pytest.mark.parametrize("kind", LINES)
def test_beside_a_region(kind: str):
    mod = module(LINES[kind])
    ex = tvm_mxplan.compile(mod)
    steps = [step.kind for region in ex.report.regions for step in region.steps]
    left = {fallback.operator for fallback in ex.report.fallbacks}
    assert steps and left.isdisjoint({"relax.nn.relu", "relax.exp", "relax.add"}), str(ex.report)
    np.testing.assert_allclose(ex(X)[0].numpy(), answers(mod, X), rtol=1e-5, atol=1e-6)


def _same_names() -> tvm.IRModule:
    """Lengths found at run time, both of which TVM's decomposition calls ``x``."""
    x = relax.Var("x", relax.TensorType((2, 3, 8, 8), "float32"))
    s = relax.Var("s", relax.TensorType((3,), "int64"))
    n, m, k = (tvm.tirx.Var("n", "int64") for _ in range(3))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, s]):
        with builder.dataflow():
            a = builder.emit(relax.op.nn.relu(x))
            shape = builder.emit(relax.op.tensor_to_shape(s))
            builder.match_cast(shape, relax.ShapeType([n, m, k]))
            b = builder.emit(relax.op.reshape(a, relax.ShapeExpr([n, m, k])))
            y = builder.emit_output(relax.op.nn.softmax(builder.emit(relax.op.exp(b)), -1))
        builder.emit_func_output(y)
    return builder.get()


def test_symbols_of_one_name_are_kept_apart():
    mod = _same_names()
    ex = tvm_mxplan.compile(mod)
    steps = [step.kind for region in ex.report.regions for step in region.steps]
    assert {"eltwise", "softmax"} <= set(steps), str(ex.report)
    for shape in ([2, 3, 64], [6, 4, 16]):
        exact = np.exp(np.exp(np.maximum(X, 0).reshape(shape).astype("float64")))
        expected = exact / exact.sum(-1, keepdims=True)
        np.testing.assert_allclose(ex(X, np.array(shape, "int64"))[0].numpy(), expected, rtol=1e-4, atol=1e-6)


def test_tensors_of_unknown_shape_stay_with_tvm():
    """A shape is all that TVM can make of one here; it is returned, and is no view of the tensor."""
    x = relax.Var("x", relax.TensorType((2, 3, 8, 8), "float32"))
    lost = relax.TensorType(dtype="float32", ndim=4)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            a = builder.emit(relax.op.nn.relu(x))
            external = relax.ExternFunc("tests.twice")
            b = builder.emit(relax.op.call_pure_packed(external, a, ty_args=[lost]))
            shapes = [
                builder.emit_output(relax.op.shape_of(builder.emit(one))) for one in (b, relax.op.erf(a))
            ]
        builder.emit_func_output(relax.Tuple(shapes))
    lowered = tvm.compile(builder.get(), "llvm", relax_pipeline="mxplan")
    machine = relax.VirtualMachine(lowered, tvm.cpu())
    assert [list(shape) for shape in machine["main"](tvm.runtime.tensor(X))] == [[2, 3, 8, 8]] * 2


@pytest.mark.parametrize("operator", ["multiply", "maximum", "add"])
def test_constants_that_are_no_numbers(operator: str):
    """Steps carry no such parameter; what TVM makes of it is what comes out."""
    mod = module(f"b = R.{operator}(a, R.const(float('nan'), 'float32'))")
    np.testing.assert_array_equal(tvm_mxplan.compile(mod)(X)[0].numpy(), answers(mod, X))
