"""``RecoverOperators``: Relax operators in place of the TIR that an importer wrote for them.

    R.call_tir(pad, (x,), ...)             -> R.nn.pad(x, ...)
    R.call_tir(maximum, (x, scalar), ...)  -> R.maximum(x, const)      (also minimum)

The ONNX importer emits Pad (and the padding of auto_pad) and Clip as TIR.  A candidate operator is read
off the function's body, built again with TE, and taken only if the two functions are structurally equal:
nothing is trusted to a name.
"""

from __future__ import annotations

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, sym, te, tirx, topi

from ..relax_types import dtype_of, make_constant, scalar_of, shape_of
from .rewriter import Site, is_call_to, rewrite_bindings


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if not is_call_to(value, "call_tir") or not isinstance(value.args[0], tvm.ir.GlobalVar):
        return None
    function = site.mod[value.args[0]]
    every = list(value.args[1].fields)
    args = [arg for arg in every if isinstance(arg.ty, relax.TensorType)]
    symbols = every[len(args) :]
    if any(shape_of(expr) is None for expr in (*args, value)):
        return None
    if not all(isinstance(symbol, tirx.Var) for symbol in symbols):
        return None
    pad = _pad(function, args, symbols, value.ty)
    return pad if pad is not None else _extremum(function, args, symbols)


def _same(function: tirx.PrimFunc, tensors: list[te.Tensor | tirx.Var]) -> bool:
    rebuilt = te.create_prim_func(tensors, index_dtype_override="int64")
    return tvm_ffi.structural_equal(_bare(function), _bare(rebuilt), map_free_vars=True)


def _bare(function: tirx.PrimFunc) -> tirx.PrimFunc:
    for name in function.attrs.keys() if function.attrs else ():
        function = function.without_attr(name)
    return function


def _placeholders(args: list[relax.Expr]) -> list[te.Tensor]:
    return [te.placeholder(arg.ty.shape.values, dtype_of(arg), name="x") for arg in args]


def _stored_value(function: tirx.PrimFunc) -> tvm.ir.Expr | None:
    """Returns the value in the function's innermost store, if it is one store in one nest of loops."""
    node = function.body
    while node is not None and not isinstance(node, tirx.BufferStore):
        node = getattr(node, "body", None) or getattr(node, "block", None)
    return None if node is None else node.value


def _pad(
    function: tirx.PrimFunc, args: list[relax.Expr], symbols: list[tirx.Var], result: relax.TensorType
) -> relax.Expr | None:
    select = _stored_value(function)
    if len(args) != 1 or not isinstance(select, relax.Call) or len(select.args) != 3:
        return None
    load, fill = select.args[1:]
    if not hasattr(load, "indices") or not isinstance(fill, tirx.FloatImm):
        return None
    fill = float(fill.value)
    before = []
    for index in load.indices:
        shift = index.b if isinstance(index, tirx.Sub) else tirx.IntImm("int64", 0)
        if not isinstance(shift, tirx.IntImm):
            return None
        before.append(int(shift.value))
    analyzer = sym.Analyzer()
    after = []
    for out, size, low in zip(result.shape.values, args[0].ty.shape.values, before, strict=True):
        added = analyzer.simplify(out - size - low)
        if not isinstance(added, tirx.IntImm):
            return None
        after.append(int(added.value))
    if min(before + after) < 0:
        return None
    (x,) = _placeholders(args)
    for value in (fill, tirx.const(fill, x.dtype)):
        if _same(function, [x, *symbols, topi.nn.pad(x, before, after, value)]):
            width = [number for pair in zip(before, after, strict=True) for number in pair]
            return relax.op.nn.pad(args[0], width, "constant", fill)
    return None


_EXTREMA = {
    tirx.Max: (topi.maximum, relax.op.maximum),
    tirx.Min: (topi.minimum, relax.op.minimum),
}


def _extremum(function: tirx.PrimFunc, args: list[relax.Expr], symbols: list[tirx.Var]) -> relax.Expr | None:
    stored = _stored_value(function)
    if stored is None or type(stored) not in _EXTREMA:
        return None
    build, operator = _EXTREMA[type(stored)]
    tensors = _placeholders(args)
    if len(args) == 2 and scalar_of(args[1]) is not None:
        if _same(function, [*tensors, *symbols, build(*tensors)]):
            return operator(args[0], args[1])
    elif len(args) == 1 and isinstance(stored.b, tirx.FloatImm):
        bound = float(stored.b.value)
        if _same(function, [*tensors, *symbols, build(tensors[0], tirx.const(bound, tensors[0].dtype))]):
            return operator(args[0], make_constant(np.array(bound, dtype_of(args[0]))))
    return None


@tvm.transform.module_pass(opt_level=0, name="RecoverOperators")
class RecoverOperators:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
