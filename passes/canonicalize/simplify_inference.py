"""``SimplifyInference``: one form for each idea, as far as Relax operators express it.

    dropout(x)[0]                          -> x
    batch_norm(x, constants...)[0]         -> x * scale + shift      (constants, folded)
    split(x, ...)[i]                       -> strided_slice(x, ...)
    concat(x[a:b], x[b:c], y)              -> concat(x[a:c], y)      (also: all of x)
    broadcast_to(x, shape of x)            -> x                      (also reshape, astype)
    a + broadcast_to(b, shape of a)        -> a + b                  (also other binary operators)
    sum(stack((a, b, ...), axis), [axis])  -> a + b + ...            (also max and min)
    minimum(maximum(x, lo), hi)            -> clip(x, lo, hi)

The ONNX importer writes Sum, Max and Min with several inputs as a reduction over a stack of broadcast
tensors, which hides every residual connection.  What it hides in TIR is ``RecoverOperators``' work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from ..relax_types import constant_of, dtype_of, make_constant, scalar_of, shape_of
from .rewriter import Site, is_call_to, rewrite_bindings
from .sections import join_sections, section_of_split

_STACK_REDUCTIONS: dict[str, Callable[[relax.Expr, relax.Expr], relax.Expr]] = {
    "sum": relax.op.add,
    "max": relax.op.maximum,
    "min": relax.op.minimum,
}

_BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")


def _rule(site: Site, value: relax.Expr) -> relax.Expr | None:
    if isinstance(value, relax.TupleGetItem):
        call = site.definition(value.tuple_value)
        if is_call_to(call, "split"):
            return section_of_split(call, value.index)
        if value.index == 0 and is_call_to(call, "nn.dropout"):
            return call.args[0]
        if value.index == 0 and is_call_to(call, "nn.batch_norm"):
            return _scale_and_shift(site, call)
    if is_call_to(value, "concat"):
        return join_sections(site, value)
    if is_call_to(value, "broadcast_to", "reshape", "astype"):
        return _identity(value)
    if is_call_to(value, *_STACK_REDUCTIONS):
        return _chain(site, value)
    clip = _clip(site, value) if is_call_to(value, "minimum") else None
    if clip is None and is_call_to(value, *_BINARY):
        return _unbroadcast(site, value)
    return clip


def _scale_and_shift(site: Site, call: relax.Call) -> relax.Expr | None:
    x, *parameters = call.args
    arrays = [constant_of(parameter) for parameter in parameters]
    if any(array is None for array in arrays) or bool(call.attrs.training) or x.ty.ndim < 1:
        return None
    gamma, beta, mean, variance = (np.asarray(array, dtype="float64") for array in arrays)
    scale = 1 / np.sqrt(variance + float(call.attrs.epsilon))
    if call.attrs.scale:
        scale = scale * gamma
    shift = -mean * scale
    if call.attrs.center:
        shift = shift + beta
    shape = [1] * x.ty.ndim
    shape[int(call.attrs.axis)] = -1
    constants = [make_constant(array.reshape(shape).astype(dtype_of(x))) for array in (scale, shift)]
    return relax.op.add(site.emit(relax.op.multiply(x, constants[0])), constants[1])


def _identity(call: relax.Call) -> relax.Expr | None:
    source = call.args[0]
    same = isinstance(source.ty, relax.TensorType) and tvm_ffi.structural_equal(source.ty, call.ty)
    return source if same else None


def _chain(site: Site, call: relax.Call) -> relax.Expr | None:
    stack = site.definition(call.args[0])
    if not is_call_to(stack, "stack") or call.attrs.keepdims or call.attrs.axis is None:
        return None
    if [int(axis) for axis in call.attrs.axis] != [int(stack.attrs.axis)]:
        return None
    tensors = site.definition(stack.args[0])
    if not isinstance(tensors, relax.Tuple):
        return None
    operator = _STACK_REDUCTIONS[call.op.name.removeprefix("relax.")]
    operands = _bare_operands(site, list(tensors.fields), call)
    if len(operands) == 1:
        return operands[0]
    left = reduce(lambda left, right: site.emit(operator(left, right)), operands[:-1])
    return operator(left, operands[-1])


def _unbroadcast(site: Site, call: relax.Call) -> relax.Expr | None:
    operands = _bare_operands(site, list(call.args), call)
    if all(bare.same_as(arg) for bare, arg in zip(operands, call.args, strict=True)):
        return None
    return relax.Call(call.op, operands, call.attrs)


def _bare_operands(site: Site, operands: list[relax.Expr], result: relax.Expr) -> list[relax.Expr]:
    """Operands without their ``broadcast_to``, if together they still broadcast to ``result``'s shape."""
    bare = []
    for operand in operands:
        definition = site.definition(operand)
        bare.append(definition.args[0] if is_call_to(definition, "broadcast_to") else operand)
    shapes, expected = [shape_of(operand) for operand in bare], shape_of(result)
    if expected is None or any(shape is None for shape in shapes):
        return operands
    reached = all(
        any(len(shape) >= back and shape[-back] == expected[-back] for shape in shapes)  # type: ignore[arg-type,index]
        for back in range(1, len(expected) + 1)
    )
    return bare if reached else operands


def _clip(site: Site, call: relax.Call) -> relax.Expr | None:
    inner = site.definition(call.args[0])
    high = scalar_of(call.args[1])
    if not is_call_to(inner, "maximum") or high is None:
        return None
    low = scalar_of(inner.args[1])
    return None if low is None else relax.op.clip(inner.args[0], low, high)


@tvm.transform.module_pass(opt_level=0, name="SimplifyInference")
class SimplifyInference:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        return rewrite_bindings(mod, _rule)
