"""Inputs and outputs of a compiled function: names, shapes, element types, and the check of a call."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from ..core.decisions.stored_state import StoredState
from ..core.program.dim_text import dim_from_text
from ..core.program.dims import LARGEST_EXTENT, evaluate, symbols_of
from ..errors import InvalidInputError
from .conditions import condition_of

if TYPE_CHECKING:
    from tvm import relax


ANY = ("*",)
OUTPUTS = "mxplan.outputs"
"""Attribute of a Relax function: names of its results, where a front end knows any."""
CONDITIONS = "mxplan.conditions"
"""Attribute of a Relax function: conditions on its named dimensions (``conditions.py``), as texts."""


@dataclass(frozen=True)
class Port:
    """One input or output; symbolic dimensions are strings, and ``ANY`` is a shape that is not known."""

    name: str
    shape: tuple[int | str, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


class KeptState(NamedTuple):
    """A result that is an input of the next call.

    Attributes
    ----------
    input, output : their numbers.
    axis : along which rows come; -1 where all of it changes.
    rows : that a call finds, a number or a name.
    after : those that it leaves, a number or arithmetic over names.
    capacity : rows that the input has room for.
    """

    input: int
    output: int
    axis: int = -1
    rows: int | str = 0
    after: int | str = 0
    capacity: int = 0


@dataclass(frozen=True)
class Signature:
    """All of a function's inputs and outputs, in order, what named dimensions may be, and what it keeps."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    states: tuple[KeptState, ...] = ()
    conditions: tuple[str, ...] = ()

    def bind(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], known: Mapping[str, int] | None = None
    ) -> list[Any]:
        """Arguments in the order of the inputs, checked; nothing is converted.

        Parameters
        ----------
        known : named dimensions that no input has to tell.

        Raises
        ------
        InvalidInputError : one sentence with the input, what was expected and what came.
        """
        names = [port.name for port in self.inputs]
        for at, value in enumerate(args):
            if not _is_array(value):
                which = f"input {self.inputs[at]}" if at < len(names) else f"value {at} of the inputs"
                raise _no_array(which, value)
        if len(args) > len(names):
            raise InvalidInputError(f"{len(args)} inputs given, {len(names)} expected: {', '.join(names)}")
        bound = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise InvalidInputError(f"no input {name!r}; the inputs are {', '.join(names)}")
            if name in bound:
                raise InvalidInputError(f"input {name!r} given twice, by position and by name")
            bound[name] = value
        missing = [name for name in names if name not in bound]
        if missing:
            raise InvalidInputError(f"input {missing[0]!r} is missing; the inputs are {', '.join(names)}")
        symbols = dict(known or {})
        origins: dict[str, str] = {}
        for port in self.inputs:
            _check(port, bound[port.name], symbols, origins)
        for port in self.inputs:
            _check_arithmetic(port, bound[port.name], symbols)
        for name, (low, high) in self.bounds.items():
            if not low <= symbols.get(name, low) <= high:
                wanted = f"{low} or more" if high == LARGEST_EXTENT else f"{low} to {high}"
                raise InvalidInputError(
                    f"dimension {name} is {symbols[name]}; expected {wanted}, as stated when compiling"
                )
        for text in self.conditions:
            _check_condition(text, symbols)
        return [bound[name] for name in names]

    def in_order(self, named: Mapping[str, Any]) -> list[Any] | None:
        """Inputs by name in their order, unchecked; None unless exactly these are given."""
        if len(named) != len(self.inputs):
            return None
        try:
            return [named[port.name] for port in self.inputs]
        except KeyError:
            return None

    def storing(self, state: Sequence[StoredState]) -> Signature:
        """The same signature with some inputs in layouts of their own."""
        if not state:
            return self
        inputs = list(self.inputs)
        for one in state:
            inputs[one.parameter] = replace(inputs[one.parameter], shape=one.stored_shape)
        return replace(self, inputs=tuple(inputs))

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": [[port.name, list(port.shape), port.dtype] for port in self.inputs],
            "outputs": [[port.name, list(port.shape), port.dtype] for port in self.outputs],
            "bounds": {name: list(pair) for name, pair in self.bounds.items()},
            "states": [list(state) for state in self.states],
            "conditions": list(self.conditions),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Signature:
        def ports(rows: list[Any]) -> tuple[Port, ...]:
            return tuple(Port(name, tuple(shape), dtype) for name, shape, dtype in rows)

        bounds = {name: (int(low), int(high)) for name, (low, high) in data.get("bounds", {}).items()}
        states = tuple(KeptState(*fields) for fields in data.get("states", []))
        conditions = tuple(data.get("conditions", ()))
        return cls(ports(data["inputs"]), ports(data["outputs"]), bounds, states, conditions)


def _is_array(value: Any) -> bool:
    return getattr(value, "shape", None) is not None and getattr(value, "dtype", None) is not None


def _no_array(which: str, value: Any) -> InvalidInputError:
    return InvalidInputError(f"{which}: expected a numpy array or a TVM tensor, got {type(value).__name__}")


def _check(port: Port, value: Any, symbols: dict[str, int], origins: dict[str, str]) -> None:
    """Checks one input; dimensions that it is the first to tell join ``symbols``, its name ``origins``."""
    if not _is_array(value):
        raise _no_array(f"input {port}", value)
    if not port.dtype:
        return  # a library that TVM wrote, which carries no types; its own check has to do
    shape = tuple(int(dim) for dim in value.shape)
    if _name_of(value.dtype) != port.dtype:
        raise InvalidInputError(f"input {port}: expected element type {port.dtype}, got {value.dtype}")
    if port.shape == ANY:
        return
    fits, told = len(shape) == len(port.shape), []
    for expected, actual in zip(port.shape, shape, strict=False):
        if not is_symbol(expected):
            fits = fits and (expected == actual or isinstance(expected, str))
        elif expected not in symbols:
            symbols[expected], origins[expected] = actual, port.name
        elif symbols[expected] != actual:
            fits = False
            origin = f" in input {origins[expected]}" if expected in origins else ""
            told.append(f"; {expected} is {symbols[expected]}{origin}")
    if not fits:
        given = ", ".join(map(str, shape))
        raise InvalidInputError(f"input {port}: expected that shape, got [{given}]{''.join(told)}")


@functools.lru_cache(maxsize=64)
def _name_of(dtype: Any) -> str:
    """The name of an element type; numpy takes microseconds to make one."""
    return str(dtype)


def _check_arithmetic(port: Port, value: Any, symbols: Mapping[str, int]) -> None:
    """Dimensions that follow from named ones are what these are in this call."""
    for axis, text in enumerate(port.shape):
        if isinstance(text, int) or is_symbol(text):
            continue
        dim = dim_from_text(text)
        if dim is None or not symbols_of(dim) <= symbols.keys():
            continue
        try:
            expected = evaluate(dim, symbols)
        except ZeroDivisionError:
            continue  # the function's own check has to do
        if (actual := int(value.shape[axis])) != expected:
            known = ", ".join(f"{name} = {symbols[name]}" for name in sorted(symbols_of(dim)))
            raise InvalidInputError(
                f"input {port}: expected {expected} in dimension {axis} ({known}), got {actual}"
            )


def _check_condition(text: str, symbols: Mapping[str, int]) -> None:
    """A condition holds of this call, unless it is about dimensions that no input tells."""
    condition = condition_of(text)
    if condition is None or not condition.names <= symbols.keys() or condition.holds(symbols):
        return
    known = ", ".join(f"{name} = {symbols[name]}" for name in sorted(condition.names))
    raise InvalidInputError(
        f"the model is compiled for sizes of which {text}, got {known}; "
        "export it with examples of such sizes, or without the branch that the condition belongs to"
    )


def is_symbol(dim: int | str) -> TypeGuard[str]:
    """Whether a dimension is a name alone."""
    return isinstance(dim, str) and dim.isidentifier()


def signature_of(
    function: relax.Function,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> Signature:
    """The signature of a Relax function; the names given stand in place of those that it has."""
    from tvm import relax

    names = list(input_names or [str(param.name) for param in function.params])
    inputs = [_port(name, param) for name, param in zip(names, function.params, strict=True)]
    result = function.ret_ty
    fields = list(result.fields) if isinstance(result, relax.TupleType) else [result]
    names = list(output_names or [f"output{i}" for i in range(len(fields))])
    if len(names) != len(fields):  # a sequence of tensors under one name
        return Signature(tuple(inputs), tuple(Port(name, ANY, "") for name in names))
    outputs = [_port(name, relax.Var(name, field)) for name, field in zip(names, fields, strict=True)]
    return Signature(tuple(inputs), tuple(outputs))


def conditions_of(function: relax.Function) -> tuple[str, ...]:
    """The conditions that a Relax function states for its named dimensions."""
    stated = function.attrs.get(CONDITIONS) if function.attrs else None
    return tuple(map(str, stated or ()))


def _port(name: str, expr: relax.Expr) -> Port:
    from ..passes.relax_types import dtype_of, shape_of

    shape = shape_of(expr)
    dims = ANY if shape is None else tuple(dim if isinstance(dim, int) else str(dim) for dim in shape)
    return Port(name, dims, dtype_of(expr))
