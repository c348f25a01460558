"""Checks for the host library: a function for each row, giving None or the reason for a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tvm import relax

from tvm_mxplan.core.program.dims import is_static
from tvm_mxplan.passes.relax_types import dtype_of, is_constant, shape_of

from .slices import slice_of

Check: TypeAlias = Callable[[relax.Call], str | None]

MAX_RANK = 12
MOVED = (
    "float32", "float64", "float16", "bfloat16", "bool",
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
)  # fmt: skip
"""Types whose elements are moved."""
COMPUTED = ("float32", "float64", "int8", "uint8", "int32", "int64", "bool")
"""Those that are compared and cast."""
ARITHMETIC = ("float32", "int32", "int64")
INTEGERS = ("int32", "int64")
SCATTERED = ("update", "add", "min", "max")
"""Ways of updates to change what is there."""
SUMMED = ("float32", "float64", "int32", "int64")
"""Those of sums up to each place."""


def tensors_of(call: relax.Call) -> list[relax.Expr]:
    """Operands that are tensors, those in a tuple that is written out too."""
    fields = [field for arg in call.args for field in (arg.fields if isinstance(arg, relax.Tuple) else [arg])]
    return [field for field in fields if isinstance(field.ty, relax.TensorType)]


def tensors_ok(call: relax.Call) -> str | None:
    """Element types, ranks and shapes that every composite asks of its operands and its result."""
    operands = tensors_of(call)
    results = list(call.ty.fields) if isinstance(call.ty, relax.TupleType) else [call.ty]
    for tensor in [*operands, *(relax.Var("result", one) for one in results)]:
        dtype, shape = dtype_of(tensor), shape_of(tensor)
        if dtype not in MOVED:
            return f"element type {dtype or 'unknown'}"
        if shape is None:
            return "a shape that is not known at compile time"
        if len(shape) > MAX_RANK:
            return f"rank {len(shape)}, at most {MAX_RANK} is taken"
    return "constants only" if all(map(is_constant, operands)) else None


def accept(_call: relax.Call) -> str | None:
    return None


def where(call: relax.Call) -> str | None:
    dtypes = [dtype_of(arg) for arg in call.args]
    if dtypes[0] != "bool":
        return f"a condition of {dtypes[0]}, expected bool"
    return None if dtypes[1] == dtypes[2] else f"values of {dtypes[1]} and {dtypes[2]}"


def compare(call: relax.Call) -> str | None:
    dtypes = [dtype_of(arg) for arg in call.args]
    if dtypes[0] != dtypes[1]:
        return f"operands of {dtypes[0]} and {dtypes[1]}"
    return _one_of(dtypes[0], COMPUTED)


def truths(call: relax.Call) -> str | None:
    other = next((dtype_of(arg) for arg in call.args if dtype_of(arg) != "bool"), None)
    return None if other is None else f"an operand of {other}, expected bool"


def isnan(call: relax.Call) -> str | None:
    return _one_of(dtype_of(call.args[0]), COMPUTED)


def cast(call: relax.Call) -> str | None:
    source, result = dtype_of(call.args[0]), dtype_of(call)
    if source == result:
        return "a cast to the same type"
    return _one_of(source, COMPUTED) or _one_of(result, COMPUTED)


def take(call: relax.Call) -> str | None:
    mode = str(call.attrs.mode)
    if mode != "fast":
        return f"mode {mode}, expected fast"
    indices = dtype_of(call.args[1])
    if indices not in ("int32", "int64"):
        return f"indices of {indices}, expected int32 or int64"
    if call.attrs.axis is None and not is_static(shape_of(call.args[0])):  # type: ignore[arg-type]
        return "no axis, of a symbolic shape"
    return None


def gather_elements(call: relax.Call) -> str | None:
    return None if shape_of(call.args[0]) else "a tensor without axes"


def gather_nd(call: relax.Call) -> str | None:
    indices = shape_of(call.args[1])
    if dtype_of(call.args[1]) not in INTEGERS:
        return f"indices of {dtype_of(call.args[1])}, expected int32 or int64"
    if not indices or not isinstance(indices[-1], int) or indices[-1] == 0:
        return "a place with no or a symbolic number of indices"
    return None


def scatter(call: relax.Call) -> str | None:
    algorithm, dtype = str(call.attrs.reduction), dtype_of(call.args[0])
    if algorithm not in SCATTERED:
        return f"updates that are combined by {algorithm}, expected one of {', '.join(SCATTERED)}"
    if not shape_of(call.args[0]) or not isinstance(shape_of(call.args[1])[-1], int):  # type: ignore[index]
        return "a tensor without axes, or a symbolic number of indices for a place"
    return None if algorithm == "update" else _one_of(dtype, ARITHMETIC)


def strided_slice(call: relax.Call) -> str | None:
    return None if slice_of(call) else "bounds that are no constant numbers"


def repeated(call: relax.Call) -> str | None:
    shape = shape_of(call.args[0])
    if "tile" not in call.op.name and call.attrs.axis is None and not is_static(shape):  # type: ignore[arg-type]
        return "no axis, of a symbolic shape"
    axes = copies_of(call)
    rank = len(axes) + sum(count != 1 for count in axes)
    return (
        None if rank <= MAX_RANK else f"rank {rank} with the axes of its copies, at most {MAX_RANK} is taken"
    )


def copies_of(call: relax.Call) -> tuple[int, ...]:
    """The number of copies along each axis of a ``tile`` or ``repeat``; of one axis where all become one."""
    if "tile" in call.op.name:
        counts = [int(count) for count in call.attrs.repeats]
        return (*[1] * (call.ty.ndim - len(counts)), *counts)
    count, axis = int(call.attrs.repeats), call.attrs.axis
    if axis is None:
        return (count,)
    return tuple(count if at == int(axis) % call.ty.ndim else 1 for at in range(call.ty.ndim))


def concat(call: relax.Call) -> str | None:
    if not isinstance(call.args[0], relax.Tuple) or call.attrs.axis is None:
        return "a tuple that is not written out, or no axis"
    return None


def reduction(call: relax.Call) -> str | None:
    shape = shape_of(call.args[0])
    if 0 in shape:  # type: ignore[operator]
        return "an empty tensor"
    return _one_of(dtype_of(call), ("float32",))


def extreme_index(call: relax.Call) -> str | None:
    shape, axis = shape_of(call.args[0]), call.attrs.axis
    extents = shape if axis is None else [shape[int(axis)]] if shape else []
    if 0 in extents:  # type: ignore[operator]
        return "no elements to choose from"
    return _sorted(call, dtype_of(call))


def top_k(call: relax.Call) -> str | None:
    shape, count = shape_of(call.args[0]), int(call.attrs.k)
    if not shape:
        return "rank 0"
    extent = shape[int(call.attrs.axis)]
    if not is_static((extent,)) or not 1 <= count <= extent:  # type: ignore[operator]
        return f"the first {count} of {extent}"
    return _sorted(call, str(call.attrs.dtype) if call.attrs.ret_type != "values" else "")


def sort(call: relax.Call) -> str | None:
    if not shape_of(call.args[0]):
        return "rank 0"
    return _sorted(call, dtype_of(call) if "argsort" in call.op.name else "")


def _sorted(call: relax.Call, places: str) -> str | None:
    """The type of what is sorted, and that of places, if they are a result."""
    if places not in ("", "int32", "int64"):
        return f"places of {places}, expected int32 or int64"
    return _one_of(dtype_of(call.args[0]), COMPUTED)


def cumulative_sum(call: relax.Call) -> str | None:
    return _one_of(dtype_of(call), SUMMED) or _one_of(dtype_of(call.args[0]), COMPUTED)


def flip(call: relax.Call) -> str | None:
    shape = shape_of(call.args[0])
    extent = shape[int(call.attrs.axis)] if shape else None
    return None if isinstance(extent, int) and extent else f"an axis of {extent} elements"


def resize(call: relax.Call) -> str | None:
    attrs = call.attrs
    if str(attrs.layout) not in ("NCW", "NCHW", "NCDHW"):
        return f"layout {attrs.layout}, expected channels first"
    if dtype_of(call.args[0]) != "float32" or dtype_of(call) != "float32":
        return f"{dtype_of(call.args[0])} to {dtype_of(call)}, expected float32"
    mode, method = str(attrs.coordinate_transformation_mode), str(attrs.method)
    if mode not in COORDINATES:
        return f"coordinates {mode}"
    if method not in METHODS:
        return f"method {method}"
    rounding = str(attrs.rounding_method)
    if method == "nearest_neighbor" and rounding not in ROUNDINGS:
        return f"rounding {rounding}"
    shapes = shape_of(call.args[0]), shape_of(call)
    if any(0 in shape for shape in shapes):  # type: ignore[operator]
        return "an empty tensor"
    return None


def grid_sample(call: relax.Call) -> str | None:
    attrs = call.attrs
    if str(attrs.layout) not in ("NCW", "NCHW", "NCDHW"):
        return f"layout {attrs.layout}, expected channels first"
    dtypes = [dtype_of(arg) for arg in (*call.args, call)]
    if set(dtypes) != {"float32"}:
        return f"{dtypes[0]} at places of {dtypes[1]}, expected float32"
    if str(attrs.method) not in SAMPLINGS:
        return f"method {attrs.method}"
    if str(attrs.padding_mode) not in ("zeros", "border", "reflection"):
        return f"padding {attrs.padding_mode}"
    return "an empty tensor" if any(0 in shape_of(arg) for arg in call.args) else None  # type: ignore[operator]


COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn")
METHODS = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}
SAMPLINGS = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}
ROUNDINGS = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


def of_floats(call: relax.Call) -> str | None:
    return _one_of(dtype_of(call.args[0]), ("float32",))


def binary(call: relax.Call) -> str | None:
    dtypes = [dtype_of(arg) for arg in call.args]
    if dtypes[0] != dtypes[1]:
        return f"operands of {dtypes[0]} and {dtypes[1]}"
    if "floor_divide" in call.op.name:
        return _one_of(dtypes[0], INTEGERS)
    if "divide" in call.op.name and dtypes[0] != "float32":
        return f"a quotient of {dtypes[0]}"
    return _one_of(dtypes[0], ARITHMETIC)


def reshape(call: relax.Call) -> str | None:
    return None


def _one_of(dtype: str, known: tuple[str, ...]) -> str | None:
    return None if dtype in known else f"element type {dtype}, expected one of {', '.join(known)}"
