"""Operators on numbers of 16 bits, as ``WidenFloats`` sees them: those that move, decide or stand aside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tvm
from tvm import relax

from tvm_mxplan.core.decisions.origin import Origin, Origins

NARROW = ("float16", "bfloat16")
WIDE = "float32"


def _named(*names: str) -> frozenset[str]:
    return frozenset(f"relax.{name}" for name in names)


SELECTING = _named(
    *("take", "gather_elements", "gather_nd", "index_tensor", "split"),
    *("strided_slice", "dynamic_strided_slice"),
)
"""They take elements out of a larger tensor, which may be a constant."""
MOVING = SELECTING | _named(
    *("reshape", "permute_dims", "expand_dims", "squeeze", "flatten", "nn.batch_flatten", "concat", "stack"),
    *("broadcast_to", "repeat", "tile", "flip", "where", "layout_transform", "tril", "triu"),
)
DECIDING = _named(
    *("floor", "ceil", "round", "trunc", "floor_divide", "floor_mod", "mod", "bucketize"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "quantize"),
)
"""Their results jump, so they read what the model's types hold."""
_ASIDE = _named("shape_of", "size", "null_value", "print", "assert_op")
_CALLING = ("call_", "invoke_", "inspect.", "memory.", "vm.", "builtin.", "dist.", "ccl.", "grad.")
_TYPES_OF_RESULTS = ("dtype", "out_dtype")


def is_aside(call: relax.Call) -> bool:
    """Whether a call computes nothing of its tensors, or by a kernel that states its types itself."""
    name = call.op.name
    return name in _ASIDE or name.removeprefix("relax.").startswith(_CALLING)


def widened_attributes(attrs: Any) -> Any:
    """The attributes with float32 where they state a result of 16 bits."""
    if attrs is None:
        return None
    info = type(attrs).__tvm_ffi_type_info__
    fields = {field.name: getattr(attrs, field.name) for field in info.fields}
    narrow = [name for name in _TYPES_OF_RESULTS if str(fields.get(name)) in NARROW]
    if not narrow:
        return attrs
    return tvm.ir.make_node(info.type_key, **{**fields, **dict.fromkeys(narrow, tvm.DataType(WIDE))})


def stated_in(origins: Origins, dtype: str) -> Origins:
    """The origins, saying that the model computes there in ``dtype``; a nameless one where there are none."""
    return tuple(replace(origin, computes=dtype) for origin in origins or (Origin(""),))
