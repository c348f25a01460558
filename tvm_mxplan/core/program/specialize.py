"""A program with symbolic shapes at given numbers: what compile-time decisions about it are made on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from . import program as ir
from .dims import Dim, Shape, evaluate, symbols_of

_TYPICAL_BATCH = 4
_TYPICAL_EXTENT = 64
_TYPICAL_IMAGE = 224
_LARGEST_EXTENT = 1 << 12


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


def typical(program: ir.Program, batch: int = _TYPICAL_BATCH, image: int = _TYPICAL_IMAGE) -> ir.Program:
    """The program at plausible numbers: a few samples in a batch, images of ``image`` pixels, or some tokens.

    More pixels or tokens where so few would leave nothing of some value, fewer where caches have no room.
    """
    if not program.symbols:
        return specialize(program, {})
    batches, pixels = _batches(program), _pixels(program)
    dims = {dim for value in program.values for dim in value.shape}
    room = _room(program)
    extent = min(_TYPICAL_EXTENT, room)
    while True:
        numbers = {
            name: batch if name in batches else max(extent, image) if name in pixels else extent
            for name in (binding.name for binding in program.symbols)
        }
        if 2 * extent > min(_LARGEST_EXTENT, room) or all(evaluate(dim, numbers) > 0 for dim in dims):
            return specialize(program, numbers)
        extent *= 2


def _room(program: ir.Program) -> int:
    """Rows for each of those that caches have and those that come: half of what there is room for."""
    room = _LARGEST_EXTENT
    for step in program.steps:
        roles = {operand.role: operand.value for operand in step.operands}
        if "filled" in roles:
            capacity = program.values[roles["past_key"]].shape[2]
            room = min(room, capacity // 2) if isinstance(capacity, int) else room
    return max(1, room)


def instances(program: ir.Program) -> Iterator[ir.Program]:
    """The program itself where its shapes are of numbers, else at small ones and with a batch of one."""
    yield typical(program, image=_TYPICAL_EXTENT)
    if _batches(program):
        yield typical(program, batch=1, image=_TYPICAL_EXTENT)


def typical_shape(shape: Shape) -> tuple[int, ...]:
    """One shape at plausible numbers, none of them less than 1."""
    return tuple(
        dim if isinstance(dim, int) else _typical_dim(dim, _TYPICAL_EXTENT if axis else _TYPICAL_BATCH)
        for axis, dim in enumerate(shape)
    )


def _typical_dim(dim: Dim, number: int) -> int:
    return max(evaluate(dim, dict.fromkeys(symbols_of(dim), number)), 1)


def _pixels(program: ir.Program) -> set[str]:
    """Symbols that are bound by an input's axes behind channels, of which there are two or more."""
    images = {
        number
        for number, value in enumerate(program.of_kind("input"))
        if len(program.values[value].shape) >= 4
    }
    return {binding.name for binding in program.symbols if binding.input in images and binding.axis >= 2}


def _batches(program: ir.Program) -> set[str]:
    """Symbols that are bound by the first axis of an input; others if they stand in first axes only."""
    elsewhere = {name for value in program.values for dim in value.shape[1:] for name in symbols_of(dim)}
    return {
        binding.name
        for binding in program.symbols
        if (binding.axis == 0 if binding.input >= 0 else binding.name not in elsewhere)
    }
