"""Changes at random: of bytes, and of region programs by their structure."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

from tvm_mxplan.core.program import program as ir

_ENDS = (0, 1, -1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63))
_WORDS = ("float32", "int8", "float64", "any", "abcd", "acdb", "aBcd16b", "", "input0", "\u00e9", "max")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, flipped, cut out or put in; or the end cut off."""
    changed = bytearray(data)
    if rng.random() < 0.1:
        del changed[rng.randrange(len(changed) + 1) :]
    for _ in range(rng.randint(1, 4)):
        if not changed:
            break
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                changed[at] ^= 1 << rng.randrange(8)
            case 2:
                del changed[at : at + rng.randrange(9)]
            case _:
                changed[at:at] = bytes([rng.choice((0, 127, 255))]) * rng.randrange(9)
    return bytes(changed)


def changed_program(program: ir.Program, rng: random.Random) -> ir.Program:
    """One to three fields of values, steps, attributes or post-ops changed, within what can be written."""
    for _ in range(rng.randint(1, 3)):
        values, steps = list(program.values), list(program.steps)
        if values and (rng.random() < 0.4 or not steps):
            at = rng.randrange(len(values))
            values[at] = _with_field(values[at], rng, keep=("kind", "name"))
        elif steps:
            at = rng.randrange(len(steps))
            steps[at] = _changed_step(steps[at], len(values), rng)
        program = replace(program, values=tuple(values), steps=tuple(steps))
    return program


def _changed_step(step: ir.Step, values: int, rng: random.Random) -> ir.Step:
    match rng.randrange(4):
        case 0:
            return replace(step, attrs=_with_field(step.attrs, rng))
        case 1 if step.operands:
            operands = list(step.operands)
            at = rng.randrange(len(operands))
            operands[at] = replace(operands[at], value=rng.choice((rng.randrange(values + 1), -1, 2**40)))
            return replace(step, operands=tuple(operands))
        case 2 if step.post_ops:
            post_ops = list(step.post_ops)
            at = rng.randrange(len(post_ops))
            post_ops[at] = _with_field(post_ops[at], rng)
            return replace(step, post_ops=tuple(post_ops))
        case _:
            return replace(step, scratchpad_bytes=_number(step.scratchpad_bytes, rng))


def _with_field(part: Any, rng: random.Random, keep: tuple[str, ...] = ()) -> Any:
    names = [field.name for field in fields(part) if field.name not in keep]
    if not names:
        return part
    name = rng.choice(names)
    return replace(part, **{name: _other(getattr(part, name), rng)})


def _other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return _number(value, rng)
    if isinstance(value, float):
        return rng.choice((0.0, -value, value * 3 - 1, float("inf")))
    if isinstance(value, str):
        return rng.choice(_WORDS)
    if isinstance(value, tuple) and all(isinstance(entry, int) for entry in value):
        entries = list(value) or [1]
        entries[rng.randrange(len(entries))] = _number(entries[0], rng)
        return tuple(entries[: rng.randint(0, len(entries))] if rng.random() < 0.2 else entries)
    return value


def _number(old: int, rng: random.Random) -> int:
    number = rng.choice((old + rng.randint(-2, 2), rng.randrange(20), old * 2, old // 2, rng.choice(_ENDS)))
    return max(-(2**63), min(number, 2**63 - 1))
