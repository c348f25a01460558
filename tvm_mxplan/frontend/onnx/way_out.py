"""Says what to do about a node that cannot be converted: fix an open dimension, or leave the operator out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .dimensions.dims import Dim, variables
from .values import Value, shape_of

LEAVE_OUT = "export the model without it, or compute that part outside"


def open_dimensions_of(values: Iterable[Value]) -> list[str]:
    """Names of the dimensions that are open in the shapes of tensors, each once."""
    names: dict[str, None] = {}
    for value in values:
        if value is None or isinstance(value, list):
            continue
        for dim in shape_of(value) or ():
            names |= dict.fromkeys(variable.name for variable in variables(dim))
    return list(names)


def way_out(names: Sequence[str], inputs: Mapping[str, Sequence[Dim] | None]) -> str:
    """The option that makes numbers of open dimensions; empty where no input has them.

    Parameters
    ----------
    inputs : dimensions of the model's inputs by name.
    """
    for name, dims in inputs.items():
        mine = [dim for dim in dims or () if not isinstance(dim, int)]
        found = [one.name for dim in mine for one in variables(dim) if one.name in names]
        if found:
            shown = ", ".join(
                str(dim) if isinstance(dim, int) else _example(dim, names) for dim in dims or ()
            )
            return f'state {" and ".join(dict.fromkeys(found))} as a number: shapes={{"{name}": [{shown}]}}'
    return ""


def _example(dim: Dim, names: Sequence[str]) -> str:
    """A number in the place of a dimension that is to be fixed, the name of another one."""
    read = [variable.name for variable in variables(dim)]
    return "1" if any(name in names for name in read) else f'"{read[0]}"'
