"""Finds the errors in a Relax module that is given to be compiled, before any pass sees it.

TVM's passes follow expressions into each other by recursion, and end the process where these stand deeper
than its stack; negative extents, and windows of nothing, come up much later and without a name.  Each binding
is looked at once, without recursion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import tvm
from tvm import relax

from ...errors import InvalidInputError
from ...passes.relax_types import shape_of

DEEPEST = 400
"""Expressions inside of expressions; TVM's own importers bind every one to a variable."""
_LARGEST = 2**63 - 1
_WINDOWS = ("relax.nn.conv", "relax.nn.max_pool", "relax.nn.avg_pool")
_ABOVE_0 = ("strides", "dilation", "pool_size", "groups")


def check_module(mod: tvm.IRModule) -> None:
    """InvalidInputError for the first thing that no pass could do anything with."""
    for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
        if isinstance(function, relax.Function):
            what = f"Relax function {gvar.name_hint}"
            _check_depth(function, what)
            for param in function.params:
                _check_shape(param, f"{what}: parameter {param.name!r}")
            for binding in _bindings(function):
                value = getattr(binding, "value", None)
                name = f"{what}: {binding.var.name!r}"
                if isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op):
                    _check_window(value, f"{name} ({value.op.name.removeprefix('relax.')})")
                _check_shape(binding.var, name)


def _check_depth(function: relax.Function, what: str) -> None:
    todo: list[tuple[relax.Expr, int]] = [(function.body, 0)]
    deepest: dict[relax.Expr, int] = {}
    while todo:
        expr, depth = todo.pop()
        if deepest.get(expr, -1) >= depth:
            continue
        deepest[expr] = depth
        if depth > DEEPEST:
            raise InvalidInputError(
                f"{what}: expressions stand inside of each other more than {DEEPEST} deep; "
                "bind each to a variable (BlockBuilder.emit)"
            )
        todo += [(child, depth + 1) for child in _children(expr)]


def _children(expr: relax.Expr) -> Iterator[relax.Expr]:
    """Yields the expressions inside of an expression; variables and constants have nothing inside."""
    if isinstance(expr, relax.SeqExpr):
        for block in expr.blocks:
            for binding in block.bindings:
                yield binding.value
        yield expr.body
    elif isinstance(expr, relax.Call):
        yield from (
            arg for arg in expr.args if isinstance(arg, relax.Call | relax.Tuple | relax.TupleGetItem)
        )
    elif isinstance(expr, relax.Tuple):
        yield from expr.fields
    elif isinstance(expr, relax.TupleGetItem):
        yield expr.tuple_value
    elif isinstance(expr, relax.If):
        yield from (expr.cond, expr.true_branch, expr.false_branch)
    elif isinstance(expr, relax.Function):
        yield expr.body


def _bindings(function: relax.Function) -> Iterator[relax.Binding]:
    """The bindings of a function, those of its branches included."""
    todo = [function.body]
    while todo:
        expr = todo.pop()
        if isinstance(expr, relax.If):
            todo += [expr.true_branch, expr.false_branch]
        for block in expr.blocks if isinstance(expr, relax.SeqExpr) else ():
            for binding in block.bindings:
                yield binding
                if isinstance(binding.value, relax.If | relax.SeqExpr):
                    todo.append(binding.value)


def _check_shape(var: tvm.ir.Var, what: str, least: int = 0) -> None:
    extents = [dim for dim in shape_of(var) or () if isinstance(dim, int)]
    if any(extent < least for extent in extents):
        raise InvalidInputError(f"{what} has the shape {_text(var)}; expected extents of {least} or more")
    if 8 * math.prod(extents) > _LARGEST:
        raise InvalidInputError(f"{what} has the shape {_text(var)}, which takes more than 2^63 bytes")


def _check_window(call: relax.Call, what: str) -> None:
    """Strides and the like, and whether a convolution or a pooling has anything to read and to make."""
    if not call.op.name.startswith(_WINDOWS):
        return
    for name in _ABOVE_0:
        numbers = getattr(call.attrs, name, None)
        if numbers is None:
            continue
        numbers = [int(number) for number in ([numbers] if isinstance(numbers, int) else numbers)]
        if any(number < 1 for number in numbers):
            raise InvalidInputError(f"{what}: {name} = {numbers}; expected numbers above 0")
    for expr, role in ((call.args[0], "its input"), (call, "its result")):
        if expr.ty is not None:
            _check_shape(expr, f"{what}: {role}", least=1)


def _text(expr: relax.Expr) -> str:
    return f"[{', '.join(map(str, shape_of(expr) or ()))}]"
