"""Relay programs as Relax: calls one after the other, functions where they are called, let as values.

A call becomes what its converter (``converters``) makes of it.  Values are found by identity, with a stack of
our own in place of recursion; only branches, blocks and functions inside of each other recurse.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence

import numpy as np
import tvm
from tvm import relax, tirx

from ...errors import InternalError, InvalidInputError, MxplanError, UnsupportedError
from ..constants import constant
from ..origins import OriginBuilder
from ..reasons import is_own_mistake, reason_of
from . import converters
from .node import Node, Value
from .places import Places, invalid, quoted, unsupported
from .syntax import (
    Block,
    Call,
    Constant,
    Expr,
    Function,
    Global,
    If,
    Item,
    Module,
    OtherType,
    TensorType,
    Tuple,
    Var,
    operands,
)

_DEEPEST = 64
"""Functions, branches and blocks inside of each other."""
_LARGEST = 2**31 - 1
_ELEMENTS = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {
    "bool",
    "bfloat16",
    "float16",
    "float32",
    "float64",
}
Scope = ChainMap[Expr, Value]


def import_program(
    module: Module,
    places: Places,
    parameters: Mapping[str, np.ndarray],
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> tvm.IRModule:
    """The function ``main`` in Relax, its parameters that have values as constants.

    Parameters
    ----------
    parameters : values by the names of parameters.
    shapes : shapes of the others, in place of those that they state.

    Raises
    ------
    InvalidInputError : no such parameter, or a program that contradicts itself.
    UnsupportedError : an operator that has no converter.
    """
    if "main" not in module.functions:
        names = ", ".join(map(quoted, module.functions)) or "none"
        raise InvalidInputError(f"{places.source}: no function main; the functions are {names}")
    main = module.functions["main"]
    builder = OriginBuilder()
    bound = _bound(main, places, parameters)
    inputs = _inputs(main, places, bound, shapes or {})
    control = any(isinstance(expr, If) for expr in _everything(module))
    importer = _Importer(module, places, builder, control)
    scope: Scope = ChainMap({})
    scope.update((param, constant(value)) for param, value in bound.items())
    scope.update(inputs.items())
    with builder.function("main", list(inputs.values())):
        if control:
            result = _tensors(importer.value(main.body, scope))
        else:
            with builder.dataflow():
                result = builder.emit_output(_tensors(importer.value(main.body, scope)))
        builder.emit_func_output(result)
    mod = builder.get()
    mod["main"] = mod["main"].with_attr("num_input", len(inputs))
    return mod


def _bound(main: Function, places: Places, parameters: Mapping[str, np.ndarray]) -> dict[Var, np.ndarray]:
    """The parameters that have values; their shapes and types are checked."""
    by_name = {param.name: param for param in main.params}
    found: dict[Var, np.ndarray] = {}
    for name, value in parameters.items():
        param = by_name.get(name) or by_name.get(f"v{name}")  # the printer puts v before what is no letter
        if param is None:
            names = ", ".join(quoted(one) for one in list(by_name)[:8])
            raise InvalidInputError(
                f"{places.source}: no parameter {quoted(name)} in main, which has {names} ..."
            )
        found[param] = value
        stated = param.type
        if not isinstance(stated, TensorType):
            continue
        fits = len(stated.shape) == value.ndim and all(
            not isinstance(dim, int) or dim == extent
            for dim, extent in zip(stated.shape, value.shape, strict=False)
        )
        if not fits or stated.dtype != str(value.dtype):
            invalid(
                places,
                param.place,
                f"parameter {quoted(param.name)}: expected {stated.dtype}{list(stated.shape)}, "
                f"got {value.dtype}{list(value.shape)}",
            )
    return found


def _inputs(
    main: Function,
    places: Places,
    bound: Mapping[Var, np.ndarray],
    shapes: Mapping[str, Sequence[int | str]],
) -> dict[Var, relax.Var]:
    """The parameters without values, as variables of Relax; one symbol for each name of an extent."""
    open_ = [param for param in main.params if param not in bound]
    names = [param.name for param in open_]
    for name in shapes:
        if name not in names:
            raise InvalidInputError(
                f"{places.source}: no input {quoted(name)}; the inputs are {', '.join(names)}"
            )
    symbols: dict[str, tirx.Var] = {}
    found: dict[Var, relax.Var] = {}
    for param in open_:
        stated = param.type
        if isinstance(stated, OtherType) or stated is None or not isinstance(stated, TensorType):
            invalid(places, param.place, f"input {quoted(param.name)} has no tensor's type; state one")
        if stated.dtype not in _ELEMENTS:
            invalid(
                places,
                param.place,
                f"input {quoted(param.name)}: no element type {quoted(stated.dtype)}; "
                "expected float32, int64 or the like",
            )
        shape = shapes.get(param.name, stated.shape)
        if len(shape) != len(stated.shape):
            raise InvalidInputError(
                f"{places.source}: input {quoted(param.name)}: expected {len(stated.shape)} dimensions, "
                f"got {list(shape)}"
            )
        dims: list[object] = []
        for axis, dim in enumerate(shape):
            if isinstance(dim, int):
                if dim > _LARGEST:
                    invalid(places, param.place, f"input {quoted(param.name)}: {dim} is no extent")
                dims.append(dim)
                continue
            name = str(dim) if dim else f"{param.name}_{axis}"
            dims.append(symbols.setdefault(name, tirx.Var(name, "int64")))
        found[param] = relax.Var(param.name, relax.TensorType(dims, stated.dtype))
    return found


def _everything(module: Module) -> list[Expr]:
    """All expressions of a module, once each."""
    todo: list[Expr] = list(module.functions.values())
    seen = set(todo)
    for expr in todo:
        inner: list[Expr] = list(operands(expr))
        if isinstance(expr, Function):
            inner.append(expr.body)
        elif isinstance(expr, Block):
            inner += [value for _, value in expr.bindings] + [expr.result]
        elif isinstance(expr, If):
            inner += [expr.then, expr.otherwise]
        new = [one for one in inner if one not in seen]
        seen.update(new)
        todo += dict.fromkeys(new)
    return todo


def _tensors(value: Value) -> relax.Expr:
    return relax.Tuple([_tensors(one) for one in value]) if isinstance(value, list) else value


class _Importer:
    """Evaluates expressions into the function that a builder has open."""

    def __init__(self, module: Module, places: Places, builder: relax.BlockBuilder, control: bool) -> None:
        self._module = module
        self._places = places
        self._builder = builder
        self._control = control
        self._open: list[Function] = []
        self._named: dict[Var, Function] = {}  # functions that a let binds
        self._depth = 0

    def value(self, root: Expr, scope: Scope) -> Value:
        """Returns the value of an expression; all that it is made of joins ``scope``."""
        self._depth += 1
        if self._depth > _DEEPEST:
            unsupported(
                self._places,
                root.place,
                f"functions, branches or blocks stand inside of each other more than {_DEEPEST} deep",
            )
        todo = [root]
        while todo:
            expr = todo[-1]
            if expr in scope:
                todo.pop()
                continue
            missing = [
                one
                for one in operands(expr)
                if one not in scope and one not in self._named and not isinstance(one, Function | Global)
            ]
            if missing:
                todo += reversed(missing)
                continue
            scope[expr] = self._evaluated(expr, scope)
            todo.pop()
        self._depth -= 1
        return scope[root]

    def _evaluated(self, expr: Expr, scope: Scope) -> Value:
        """The value of an expression whose operands are in ``scope``."""
        if isinstance(expr, Constant):
            return constant(expr.value)
        if isinstance(expr, Tuple):
            return [self._operand(field, scope) for field in expr.fields]
        if isinstance(expr, Item):
            source = self._operand(expr.source, scope)
            if not isinstance(source, list) or not 0 <= expr.index < len(source):
                count = f"{len(source)} fields" if isinstance(source, list) else "a tensor"
                invalid(
                    self._places, expr.place, f"field {expr.index} of {count}; expected a field that there is"
                )
            return source[expr.index]
        if isinstance(expr, Call):
            return self._call(expr, scope)
        if isinstance(expr, Block):
            for variable, bound in expr.bindings:
                if isinstance(bound, Function):
                    self._named[variable] = bound
                else:
                    scope[variable] = self.value(bound, scope)
            return self.value(expr.result, scope)
        if isinstance(expr, If):
            return self._if(expr, scope)
        if isinstance(expr, Var) and expr not in self._named:
            invalid(self._places, expr.place, f"variable {quoted(expr.name)} is read before it is bound")
        return unsupported(
            self._places, expr.place, "a function stands as a value; expected it to be called where it is"
        )

    def _operand(self, expr: Expr, scope: Scope) -> Value:
        """Returns the value of an expression in ``scope``, or else evaluates it."""
        return scope[expr] if expr in scope else self._evaluated(expr, scope)

    def _call(self, call: Call, scope: Scope) -> Value:
        args = [self._operand(arg, scope) for arg in call.args]
        if not isinstance(call.callee, str):
            return self._inlined(call, call.callee, args, scope)
        node = Node(
            call.callee,
            f"{self._places.named(call.place)}: {call.callee}",
            args,
            call.attributes,
            self._builder,
        )
        try:
            return self._converted(node)
        except MxplanError:
            raise
        except Exception as error:  # TVM's inference says by many types what does not fit
            if is_own_mistake(error):
                raise InternalError(
                    f"{node.called}: its converter fails ({type(error).__name__}: {reason_of(error)}); "
                    "please report it"
                ) from error
            raise InvalidInputError(f"{node.called}: cannot be imported ({reason_of(error)})") from error

    def _converted(self, node: Node) -> Value:
        converter = converters.of(node.operator)
        if converter is None:
            raise UnsupportedError(
                f"{node.called}: this operator of Relay's is not read; {converters.advice(node.operator)}"
            )
        value = converter(node)
        if isinstance(value, tuple):
            value = list(value)
        return value if isinstance(value, list) else self._bound(value)

    def _bound(self, value: relax.Expr) -> relax.Expr:
        return value if isinstance(value, relax.Var | tvm.ir.GenericConst) else self._builder.emit(value)

    def _inlined(self, call: Call, callee: Expr, args: list[Value], scope: Scope) -> Value:
        """A function's result with its parameters as they are given."""
        function: Expr | None = callee
        if isinstance(callee, Global):
            function = self._module.functions.get(callee.name)
        elif isinstance(callee, Var):
            function = self._named.get(callee)
        if not isinstance(function, Function):
            name = callee.name if isinstance(callee, Global | Var) else "this"
            unsupported(
                self._places,
                call.place,
                f"{quoted(name)} is no function of the module; expected its definition",
            )
        if function in self._open:
            unsupported(
                self._places,
                call.place,
                "a function calls itself; expected one that ends when it is written out",
            )
        if len(args) != len(function.params):
            invalid(self._places, call.place, f"expected {len(function.params)} operands, got {len(args)}")
        inner = scope.new_child(dict(zip(function.params, args, strict=True)))
        self._open.append(function)
        body = self.value(function.body, inner)
        self._open.pop()
        return body

    def _if(self, expr: If, scope: Scope) -> Value:
        condition = self._operand(expr.condition, scope)
        if isinstance(condition, tvm.ir.GenericConst):
            chosen = expr.then if condition.value.numpy().reshape(-1)[0] else expr.otherwise
            return self.value(chosen, scope.new_child())
        branches = [self._branch(branch, scope) for branch in (expr.then, expr.otherwise)]
        return self._fields(self._builder.emit(relax.If(condition, *branches)))

    def _branch(self, branch: Expr, scope: Scope) -> relax.SeqExpr:
        self._builder._begin_binding_block()
        result = self._builder.emit(_tensors(self.value(branch, scope.new_child())))
        return relax.SeqExpr([self._builder._end_block()], result)

    def _fields(self, value: relax.Expr) -> Value:
        if not isinstance(value.ty, relax.TupleType):
            return value
        count = len(value.ty.fields)
        return [self._fields(self._builder.emit(relax.TupleGetItem(value, index))) for index in range(count)]
