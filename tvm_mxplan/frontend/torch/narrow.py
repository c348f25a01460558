"""Operators on tensors of 16 bits, converted in float32: converters then meet no types that they err in.

    aten.convolution of float16    its operands as float32, the convolution, a cast back

Kernels that a converter writes out add up in float32 for it; the other casts go where numbers of 16 bits are
computed with in float32 (``passes/canonicalize/widen_floats.py``).  What only moves elements, compares them
or decides a whole number is converted as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from tvm import relax

from ...passes.relax_types import is_constant
from .node import Emitter, Stated, dtype_of, is_tensor

NARROW = ("float16", "bfloat16")
WIDE = "float32"
_AS_THEY_STAND = frozenset(
    (
        *("_to_copy", "to", "type_as", "alias", "clone", "contiguous", "detach", "lift_fresh_copy", "copy"),
        *("view", "_unsafe_view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "permute", "t"),
        *("transpose", "swapaxes", "movedim", "expand", "expand_as", "repeat", "repeat_interleave", "tile"),
        *("cat", "stack", "split", "split_with_sizes", "chunk", "unbind", "slice", "select", "narrow"),
        *("flip", "roll", "index_select", "gather", "embedding", "index", "take", "where", "masked_fill"),
        *("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "tril", "triu"),
        *("floor", "ceil", "round", "trunc", "bucketize"),
        *("full_like", "zeros_like", "ones_like", "empty_like", "new_full", "new_zeros", "new_ones"),
        *("constant_pad_nd", "slice_scatter", "select_scatter", "empty", "empty_strided", "new_empty"),
        *("diagonal", "getitem", "logical_not", "logical_and", "logical_or", "logical_xor"),
    )
)


def only_moves(operator: str) -> bool:
    """Whether ``operator``, by PyTorch's name, computes nothing: it moves elements or compares them."""
    return operator.split(".")[1] in _AS_THEY_STAND


def is_widened(operator: str, operands: Mapping[Any, Any], stated: list[Stated | None]) -> bool:
    """Whether ``operator``, by PyTorch's name, is converted in float32.

    Parameters
    ----------
    operands : values by the nodes that are read.
    stated : the results.
    """
    if only_moves(operator):
        return False
    read = any(_is_narrow(part) for value in operands.values() for part in _parts(value))
    return read or any(result is not None and result.dtype in NARROW for result in stated)


@contextmanager
def widened_operands(emitter: Emitter, values: dict[Any, Any], read: list[Any]) -> Iterator[None]:
    """Lets nodes have their values in float32 meanwhile.

    Parameters
    ----------
    values : by nodes; as before afterwards.
    read : the nodes.
    """
    before = {node: values[node] for node in read}
    try:
        values.update({node: _widened(emitter, value) for node, value in before.items()})
        yield
    finally:
        values.update(before)


def widened_stated(stated: list[Stated | None]) -> list[Stated | None]:
    """The statement of the results, in float32 where it is of 16 bits."""
    return [replace(one, dtype=WIDE) if one is not None and one.dtype in NARROW else one for one in stated]


def narrowed(emitter: Emitter, found: Any, stated: list[Stated | None]) -> Any:
    """Results in the types of 16 bits that PyTorch states."""
    if isinstance(getattr(found, "ty", None), relax.TupleType):
        found = [emitter.emit(relax.TupleGetItem(found, at)) for at in range(len(found.ty.fields))]
    if isinstance(found, list | tuple):
        return [_narrowed(emitter, one, of) for one, of in zip_longest(found, stated[: len(found)])]
    return _narrowed(emitter, found, stated[0])


def _narrowed(emitter: Emitter, value: Any, stated: Stated | None) -> Any:
    if stated is None or stated.dtype not in NARROW or not is_tensor(value):
        return value
    return emitter.cast(value, stated.dtype)


def _widened(emitter: Emitter, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_widened(emitter, part) for part in value]
    if not _is_narrow(value):
        return value
    if not is_constant(value):
        return emitter.cast(value, WIDE)
    key = ("wide", value.value.__chandle__())
    if key not in emitter.made:  # a weight that several operators read stays one constant
        emitter.made[key] = value, relax.const(value.value.numpy().astype(WIDE), WIDE)
    return emitter.made[key][1]


def _is_narrow(value: Any) -> bool:
    return is_tensor(value) and dtype_of(value) in NARROW


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
