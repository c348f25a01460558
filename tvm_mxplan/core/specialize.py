"""A program with symbolic shapes at given numbers: what compile-time decisions about it are made on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from . import program as ir
from .dims import Shape, evaluate, symbols_of

_TYPICAL_BATCH = 4
_TYPICAL_EXTENT = 64


def specialize(program: ir.Program, symbols: Mapping[str, int]) -> ir.Program:
    """The program with every symbol replaced by its number; KeyError where one is missing."""
    values = tuple(
        replace(
            value,
            shape=tuple(evaluate(dim, symbols) for dim in value.shape),
            alias_offset=evaluate(value.alias_offset, symbols),
        )
        for value in program.values
    )
    return replace(program, values=values, symbols=())


def typical(program: ir.Program, batch: int = _TYPICAL_BATCH) -> ir.Program:
    """The program at plausible numbers: a few images in a batch, some dozens of pixels or tokens."""
    return specialize(
        program,
        {binding.name: _TYPICAL_EXTENT if binding.axis else batch for binding in program.symbols},
    )


def instances(program: ir.Program) -> Iterator[ir.Program]:
    """The program itself where its shapes are of numbers, else at plausible ones and with a batch of one."""
    yield typical(program)
    if any(binding.axis == 0 for binding in program.symbols):
        yield typical(program, batch=1)


def typical_shape(shape: Shape) -> tuple[int, ...]:
    """One shape at plausible numbers."""
    return tuple(
        evaluate(dim, dict.fromkeys(symbols_of(dim), _TYPICAL_EXTENT if axis else _TYPICAL_BATCH))
        for axis, dim in enumerate(shape)
    )
