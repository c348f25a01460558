"""A Relax region as a region program: walks the region, one composite after the other.

Before   a region function whose body calls local composite functions
After    a program in plain layouts with one or a few steps for each composite

What each composite becomes, a library says in a table of functions by the names of its patterns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Shape, Symbol, symbols_of
from tvm_mxplan.core.program.program import Program, SymbolBinding
from tvm_mxplan.errors import InternalError, MxplanError, UnsupportedError
from tvm_mxplan.passes.relax_types import OPERATOR, dim_of, dtype_of, is_constant, shape_of

from .composite import Composite

Results: TypeAlias = int | tuple[int, ...]
"""The value of a composite's result, or those of its results."""
Table: TypeAlias = Mapping[str, Callable[[Composite], Results]]
"""Translations of composites, by the names of patterns without the code generator's: a function each, which
adds steps to the composite's builder and gives the value of the result, or of each where it is a tuple."""


class Guest(NamedTuple):
    """A library with composites in regions of another: its name, which its steps say, and its table."""

    library: str
    table: Table


def translate_region(
    region: relax.Function,
    name: str,
    codegen: str,
    table: Table,
    guests: Mapping[str, Guest] = MappingProxyType({}),
) -> tuple[Program, list[np.ndarray]]:
    """The program of ``region`` and the arrays of its constants, by their index.

    Parameters
    ----------
    codegen : the code generator's name, with which the names of its composites begin.
    table : what they become.
    guests : by their code generators, whose composites may stand among them.

    Raises
    ------
    UnsupportedError : shapes that are not known.
    """
    builder = ProgramBuilder(name)
    values: dict[tvm.ir.Var, int] = {}
    several: dict[tvm.ir.Var, tuple[int, ...]] = {}
    for param in _tensors(region.params):
        values[param] = builder.port("input", str(param.name), _known_shape(name, param), dtype_of(param))
    _bind_symbols(builder, region)
    bindings = list(_bindings(region.body))
    fields, aliases = _results(region, bindings)
    results = _tensors_of(name, fields)
    outputs = [
        builder.port("output", f"output{i}", _known_shape(name, result), dtype_of(result))
        for i, result in enumerate(results)
    ]
    composites: dict[tvm.ir.Var, relax.Function] = {}
    for binding in bindings:
        value = binding.value
        if isinstance(value, relax.Function):
            composites[binding.var] = value
        elif isinstance(value, relax.Call) and value.op in composites:
            composite = _opened(builder, composites[value.op], value, values)
            owner, row = str(composites[value.op].attrs["Composite"]).split(".")[-2:]
            library, rows = ("", table) if owner == codegen else guests[owner]
            builder.operator = str(composites[value.op].attrs.get(OPERATOR, ""))
            builder.library = library
            found = _translated(composite, row, rows)
            if isinstance(found, tuple):
                several[binding.var] = found
            else:
                values[binding.var] = found
        elif isinstance(value, relax.TupleGetItem) and value.tuple_value in several:
            values[binding.var] = several[value.tuple_value][value.index]
        elif isinstance(value, tvm.ir.Var) and value in values:
            values[binding.var] = values[value]
        elif isinstance(value, tvm.ir.Var) and value in several:
            several[binding.var] = several[value]
        elif binding.var not in aliases:
            raise InternalError(f"region {name}: {binding.var.name} is bound to an unexpected {value}")
    builder.operator = builder.library = ""
    made = [values[result] for result in results if result in values] or several[fields[0]]
    for value, output in zip(made, outputs, strict=True):
        builder.write_output(value, output)
    program = builder.tidied()
    _check_bound(program)
    return program, builder.constants


def translate_composite(composite: relax.Function, table: Table) -> Program:
    """The program of one composite alone, which reads its parameters and gives its results."""
    builder = ProgramBuilder("composite")
    inner = {
        param: builder.port("input", str(param.name), _known_shape(builder.name, param), dtype_of(param))
        for param in _tensors(composite.params)
    }
    _bind_symbols(builder, composite)
    definitions = {binding.var: binding.value for binding in _bindings(composite.body)}
    opened = Composite(builder, inner, definitions, composite.body.body)
    row = str(composite.attrs["Composite"]).split(".")[-1]
    made = _translated(opened, row, table)
    for at, value in enumerate(made if isinstance(made, tuple) else (made,)):
        told = builder.values[value]
        builder.write_output(value, builder.port("output", f"output{at}", told.shape, told.dtype))
    return builder.tidied()


def _opened(
    builder: ProgramBuilder,
    function: relax.Function,
    call: relax.Call,
    values: dict[tvm.ir.Var, int],
) -> Composite:
    arguments = zip(function.params, call.args, strict=True)
    inner = {param: values[arg] for param, arg in arguments if isinstance(param.ty, relax.TensorType)}
    definitions = {binding.var: binding.value for binding in _bindings(function.body)}
    return Composite(builder, inner, definitions, function.body.body)


def _translated(composite: Composite, row: str, table: Table) -> Results:
    """The composite's results, its steps added to the program."""
    try:
        return table[row](composite)
    except MxplanError:
        raise
    except Exception as error:
        operands = [composite.builder.values[value] for value in composite.params.values()]
        shapes = ", ".join(f"[{', '.join(map(str, operand.shape))}]" for operand in operands)
        raise InternalError(
            f"region {composite.builder.name}: operator {row} of {shapes} was accepted and cannot be "
            f"translated ({type(error).__name__}: {error})"
        ) from error


def _tensors(params: Iterable[tvm.ir.Var]) -> list[tvm.ir.Var]:
    """Parameters without shapes: of a reshape, whose result states its own, and of symbols."""
    return [param for param in params if isinstance(param.ty, relax.TensorType)]


def _bindings(body: relax.Expr) -> Iterator[relax.VarBinding]:
    for block in body.blocks:
        yield from block.bindings


def _results(
    region: relax.Function, bindings: list[relax.VarBinding]
) -> tuple[list[relax.Expr], set[tvm.ir.Var]]:
    """The region's results, and the variables that only gather them into a tuple."""
    definitions = {binding.var: binding.value for binding in bindings}
    result, tuples = region.body.body, set()
    while isinstance(result, tvm.ir.Var) and isinstance(definitions.get(result), tvm.ir.Var | relax.Tuple):
        tuples.add(result)
        result = definitions[result]
    fields = list(result.fields) if isinstance(result, relax.Tuple) else [result]
    if any(is_constant(field) for field in fields):
        raise InternalError("a region returns a constant")
    return fields, tuples


def _tensors_of(name: str, results: list[relax.Expr]) -> list[relax.Expr]:
    """A variable for each result; for those of a composite that gives a tuple, one for each of its fields.

    Raises
    ------
    UnsupportedError : such a tuple beside other results.
    """
    if not any(isinstance(result.ty, tvm.ir.TupleType) for result in results):
        return results
    if len(results) > 1:
        raise UnsupportedError(f"region {name}: it returns a tuple inside of another")
    return [relax.Var(f"{results[0].name}_{at}", type_) for at, type_ in enumerate(results[0].ty.fields)]


def _bind_symbols(builder: ProgramBuilder, region: relax.Function) -> None:
    """Symbols as extents of inputs, or else as numbers of the shapes among the region's parameters."""
    bound: set[str] = set()

    def bind(dim: object, number: int, axis: int) -> None:
        if isinstance(dim, Symbol) and dim.name not in bound:
            bound.add(dim.name)
            builder.symbols.append(SymbolBinding(dim.name, number, axis))

    for number, value in enumerate(list(builder.values)):
        for axis, dim in enumerate(value.shape):
            bind(dim, number, axis)
    shapes = [param.ty for param in region.params if isinstance(param.ty, relax.ShapeType)]
    numbers = [dim_of(expr) for shape in shapes for expr in shape.values or [None] * shape.ndim]
    for at, handed in enumerate(numbers):
        bind(handed, -1, at)


def _known_shape(name: str, expr: relax.Expr) -> Shape:
    shape = shape_of(expr)
    if shape is None:
        raise UnsupportedError(f"region {name}: {expr.name} is of type {expr.ty}, of unknown shape")
    return shape


def check_numbers(program: Program) -> None:
    """Raise UnsupportedError for a step with a number that is none: programs cannot carry it."""
    for step in program.steps:
        for part in (step.attrs, *step.post_ops):
            if any(isinstance(number, float) and math.isnan(number) for number in vars(part).values()):
                raise UnsupportedError(f"region {program.name}: {step.name} has a parameter of NaN")


def _check_bound(program: Program) -> None:
    """Raise UnsupportedError for a symbol that no argument of the region tells."""
    bound = {binding.name for binding in program.symbols}
    for value in program.values:
        for dim in (*value.shape, value.alias_offset):
            missing = sorted(symbols_of(dim) - bound)
            if missing:
                raise UnsupportedError(
                    f"region {program.name}: {value.name} has the dimension {dim}, and no argument "
                    f"tells {missing[0]}"
                )
