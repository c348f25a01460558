"""Rules that every region program keeps, whoever wrote it: ids in range, no gaps in numbers, roles and types.

``codec`` holds what it reads to these rules, so that whoever reads a decoded program may follow every number
in it.  Whether shapes fit each other and memory is sound is the runtime's to check, before it makes anything
of a program (``byoc/runtime/program/step_rules.cc``, ``memory/memory_rules.cc``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import get_type_hints

from ..element_types import item_bytes
from . import program as ir
from .dims import Dim, symbols_of

_MAX_RANK = 12
_MAX_NUMBER = 2**31 - 1

_WEIGHTED = (("src", "weights"), ("bias", *ir.SCALE_ROLES))
_ROLES: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {
    ir.Convolution: (("src", "weights"), (*_WEIGHTED[1], "depthwise_weights", "depthwise_bias")),
    ir.Deconvolution: _WEIGHTED,
    ir.ConvolutionBackwardWeights: (("src", "gradient"), ()),
    ir.MatMul: _WEIGHTED,
    ir.InnerProduct: _WEIGHTED,
    ir.FewBitsProduct: (("src", "numbers", "scales"), ("zero_points",)),
    ir.GroupedProduct: (("src", "weights", "ends"), ()),
    ir.BatchNormalization: (("src", "mean", "variance", "scale", "shift"), ()),
    ir.PoolingBackward: (("src", "gradient"), ()),
    ir.BatchNormalizationTraining: (("src", "scale", "shift", "batch_mean", "batch_variance"), ()),
    ir.BatchNormalizationBackward: (
        ("src", "gradient", "mean", "variance", "scale", "scale_gradient", "shift_gradient"),
        (),
    ),
    ir.LayerNormalization: (("src",), ("scale", "shift")),
    ir.RmsNormalization: (("src",), ("scale",)),
    ir.SqueezeExcite: (("src", "weights"), ("bias", "gate_weights", "gate_bias")),
    ir.LayerNormalizationBackward: (("src", "gradient", "scale", "scale_gradient", "shift_gradient"), ()),
    ir.Binary: (("src", "src1"), ()),
    ir.PReLU: (("src", "weights"), ()),
    ir.Recurrent: (
        ("src", "weights", "recurrence"),
        ("bias", "peepholes", "hidden", "cell", "last_hidden", "last_cell"),
    ),
    ir.RecurrentTraining: (
        ("src", "recurrence", "kept_gates"),
        ("bias", "hidden", "cell", "kept_cells", "last_cell"),
    ),
    ir.RecurrentBackward: (
        ("src", "recurrence", "outputs", "gradient", "hidden_gradient"),
        ("cells", "hidden", "cell", "last_cell_gradient", "reset_gradient", "cell_gradient"),
    ),
    ir.Attention: (
        ("src", "key", "value"),
        ("mask", "past_key", "past_value", "joined_key", "joined_value", "filled"),
    ),
    ir.Rotary: (("src", "cosines", "sines"), ()),
    ir.Gather: (("src", "indices"), ()),
    ir.GatherElements: (("src", "indices"), ()),
    ir.GatherNd: (("src", "indices"), ()),
    ir.GridSample: (("src", "grid"), ()),
    ir.Put: (("src", "part"), ()),
    ir.Scatter: (("src", "indices", "updates"), ()),
    ir.ScatterElements: (("src", "indices", "updates"), ()),
    ir.Ranking: (("src",), ("order",)),
    ir.Select: (("condition", "src", "src1"), ()),
    ir.Compare: (("src", "src1"), ()),
    ir.DynamicQuantization: (("src", "made_scale", "made_zero_point"), ()),
    ir.Quantization: (("src",), ("src_scale", "src_zero_point", "dst_scale", "dst_zero_point")),
}
"""Roles that a step needs and those that it may have, beside dst; the kinds that are missing need src."""

_NUMBERS = {"groups": 1, "size": 1, "axis": 0, "batch_axes": 0, "width": 2}
"""The least that an integer may be."""
_LISTS = {"strides": 1, "dilation": 1, "kernel": 1, "padding": 0, "begin": 0, "places": 0}
"""The least that an entry of a list may be."""


class ProgramError(ValueError):
    """A program breaks a rule; the message names the region, the object, what was expected and what came."""


def check_program(program: ir.Program) -> None:
    """Hold a program to the rules; ProgramError says which one it breaks."""
    try:
        _check_values(program)
        _check_states(program)
        _check_symbols(program)
        results: set[int] = set()
        for step in program.steps:
            _check_step(program, step)
            for operand in step.operands:
                if operand.is_result and operand.value in results:
                    raise ProgramError(
                        f"{_name(step)}: {operand.role}: expected a value of its own, got an earlier result"
                    )
                if operand.is_result:
                    results.add(operand.value)
    except ProgramError as error:
        raise ProgramError(f"region {program.name!r}: {error}") from None


def _name(step: ir.Step) -> str:
    return f"{step.kind} {step.name!r}"


def _check_values(program: ir.Program) -> None:
    bound = {binding.name for binding in program.symbols}
    for number, value in enumerate(program.values):
        where = f"value {value.name!r}"
        if len(value.shape) > _MAX_RANK:
            raise ProgramError(f"{where}: expected rank {_MAX_RANK} at most, got {len(value.shape)}")
        try:
            item_bytes(value.dtype)
        except ValueError as error:
            raise ProgramError(f"{where}: {error}") from None
        _check_dims(where, (*value.shape, value.alias_offset), bound)
        if not -1 <= value.alias_of < number:
            raise ProgramError(f"{where}: expected an alias of an earlier value, got {value.alias_of}")
        if value.alias_of >= 0 and value.kind != "local":
            raise ProgramError(f"{where}: expected an alias to be a local, got {value.kind}")
        if value.offset < -1 or value.nbytes < -1:
            raise ProgramError(f"{where}: expected -1 or more, got {value.nbytes} bytes at {value.offset}")
    for kind in ("input", "output", "constant"):
        indices = sorted(value.index for value in program.values if value.kind == kind)
        if indices != list(range(len(indices))):
            raise ProgramError(f"{kind}s: expected to be numbered from 0 without gaps, got {indices}")
    if program.arena_bytes < -1:
        raise ProgramError(f"arena: expected -1 byte or more, got {program.arena_bytes}")


def _check_states(program: ir.Program) -> None:
    """Values of one state stand alike, since an update joins them number by number."""
    first: dict[int, ir.Value] = {}
    changed: set[int] = set()
    for value in program.values:
        if value.state == -1:
            continue
        where = f"value {value.name!r}"
        if value.state < -1:
            raise ProgramError(f"{where}: expected state -1 or more, got {value.state}")
        if value.kind not in ("input", "output"):
            raise ProgramError(
                f"{where}: expected state {value.state} to be an input or output, got a {value.kind}"
            )
        if value.kind == "output" and value.state in changed:
            raise ProgramError(f"{where}: expected one output to change state {value.state}, got another")
        changed |= {value.state} if value.kind == "output" else set()
        other = first.setdefault(value.state, value)
        if (value.shape, value.dtype, value.layout) != (other.shape, other.dtype, other.layout):
            raise ProgramError(
                f"{where}: expected shape, type and layout of {other.name!r}, state {value.state} too, got "
                f"{value.dtype} {value.shape} {value.layout}"
            )


def _check_dims(where: str, dims: Iterable[Dim], bound: set[str]) -> None:
    for dim in dims:
        unbound = symbols_of(dim) - bound
        if unbound:
            raise ProgramError(f"{where}: expected symbols that are bound, got {', '.join(sorted(unbound))}")
        if isinstance(dim, int) and dim < 0:
            raise ProgramError(f"{where}: expected no negative number, got {dim}")


def _check_symbols(program: ir.Program) -> None:
    inputs = program.of_kind("input")
    names = [binding.name for binding in program.symbols]
    if len(set(names)) < len(names):
        raise ProgramError(f"symbols: expected a name for each, got {', '.join(names)}")
    for binding in program.symbols:
        if binding.input == -1 and binding.axis >= 0:
            continue  # a number beside the tensors; how many there are a call tells
        known = 0 <= binding.input < len(inputs)
        if not known or not 0 <= binding.axis < len(program.values[inputs[binding.input]].shape):
            place = f"axis {binding.axis} of input {binding.input}"
            raise ProgramError(f"symbol {binding.name!r}: expected an axis of an input, got {place}")


def _check_step(program: ir.Program, step: ir.Step) -> None:
    needed, allowed = _ROLES.get(type(step.attrs), (("src",), ()))
    roles = [operand.role for operand in step.operands]
    for role in (*needed, "dst"):
        if role not in roles:
            raise ProgramError(f"{_name(step)}: expected an operand in role {role}, got none")
    for role in roles:
        if role not in (*needed, *allowed, "dst"):
            raise ProgramError(f"{_name(step)}: {role}: expected no such role")
        if roles.count(role) > 1 and not (role == "src" and isinstance(step.attrs, ir.Concat)):
            raise ProgramError(f"{_name(step)}: {role}: expected one operand, got {roles.count(role)}")
    read = [post_op.value for post_op in step.post_ops if isinstance(post_op, ir.BinaryPostOp)]
    for value in [*(operand.value for operand in step.operands), *read]:
        if not 0 <= value < len(program.values):
            raise ProgramError(f"{_name(step)}: expected values 0 to {len(program.values) - 1}, got {value}")
    for operand in step.operands:
        if operand.is_result and program.values[program.root(operand.value)].kind in ("input", "constant"):
            where = f"{_name(step)}: {operand.role}"
            raise ProgramError(f"{where}: expected a local or an output, got a given value")
    adds = any(isinstance(post_op, ir.SumPostOp) for post_op in step.post_ops)
    if adds and program.values[step.dst].alias_of < 0 and program.values[step.dst].kind != "output":
        raise ProgramError(f"{_name(step)}: dst: expected an alias of what the sum adds, got none")
    if step.scratchpad_offset < -1 or step.scratchpad_bytes < -1:
        got = f"{step.scratchpad_bytes} bytes at {step.scratchpad_offset}"
        raise ProgramError(f"{_name(step)}: scratchpad: expected -1 or more, got {got}")
    for part in (step.attrs, *step.post_ops):
        _check_fields(_name(step), part)


def _check_fields(where: str, part: ir.Attributes | ir.PostOp) -> None:
    """Types of a step's attributes, and ranges of those that count something."""
    hints = _hints(type(part))
    for field in fields(part):
        value, hint = getattr(part, field.name), hints[field.name]
        if not _is_a(value, hint):
            raise ProgramError(f"{where}: {field.name}: expected {hint}, got {value!r}")
        if field.name in _NUMBERS:
            _check_range(where, field.name, [value], _NUMBERS[field.name])
        elif field.name in _LISTS and isinstance(value, tuple):
            _check_range(where, field.name, value, _LISTS[field.name])
        elif isinstance(part, ir.DepthwisePostOp):
            _check_range(where, field.name, [value], 0 if field.name == "padding" else 1)


def _check_range(where: str, name: str, numbers: Iterable[int], least: int) -> None:
    for number in numbers:
        if not least <= number <= _MAX_NUMBER:
            raise ProgramError(f"{where}: {name}: expected {least} to {_MAX_NUMBER}, got {number}")


_HINTS: dict[type, dict[str, str]] = {}


def _hints(cls: type) -> dict[str, str]:
    """Names of the types of a dataclass's fields: int, float, bool, str, or integers for a tuple of them."""
    if cls not in _HINTS:
        names = {int: "int", float: "float", bool: "bool", tuple[int, ...]: "integers"}
        _HINTS[cls] = {name: names.get(hint, "str") for name, hint in get_type_hints(cls).items()}
    return _HINTS[cls]


def _is_a(value: object, hint: str) -> bool:
    if hint == "integers":
        return isinstance(value, tuple) and all(type(number) is int for number in value)
    if hint == "float":  # an integer stands for a real number too
        return type(value) in (int, float)
    return type(value).__name__ == hint
