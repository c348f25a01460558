"""Composites of quantised models: conversions, and products whose weights are constants of integers.

    q = R.quantize(x, s, z)                                      a conversion
    y = R.dequantize(q, s, z)                                    a conversion
    q, s, z = R.mxplan.dynamic_quantize(x)                       a conversion by numbers of the call
    y = R.mxplan.dynamic_dequantize(q, s, z)                     a conversion by numbers of the call
    y = R.nn.conv2d(x, R.dequantize(w, s, z))                    a convolution of x with real weights, for now

Which products compute with integers is decided on the region program (``lower``), where whatever stands
between them is plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import tvm
from tvm import relax
from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape
from tvm_mxplan.passes.relax_types import constant_of, dtype_of, is_constant, shape_of

Match = Mapping[str, relax.Expr]
Pattern = tuple[DFPattern, dict[str, DFPattern]]
INTEGERS = ("uint8", "int8")
MAX_RANK = 6


def conversion(operator: str) -> Callable[[], Pattern]:
    return lambda: (is_op(f"relax.{operator}")(wildcard(), is_const(), is_const()), {})


def product(*operators: str) -> list[Callable[[], Pattern]]:
    """A product by one of these operators of anything and dequantised weights."""
    return [lambda operator=operator: _product(operator, transposed=False) for operator in operators]  # type: ignore[misc]


def transposed_product() -> Pattern:
    return _product("matmul", transposed=True)


def _product(operator: str, *, transposed: bool) -> Pattern:
    numbers = is_op("relax.dequantize")(is_const(), is_const(), is_const())
    weights = is_op("relax.permute_dims")(numbers) if transposed else numbers
    named = {"numbers": numbers, "transpose": weights} if transposed else {"numbers": numbers}
    return is_op(f"relax.{operator}")(wildcard(), weights), named


def conversion_ok(match: Match) -> str | None:
    """Types, shapes and numbers of a conversion by itself, the operator ``root``."""
    call = match["root"]
    data, result = call.args[0], call
    real, integers = (data, result) if call.op.name == "relax.quantize" else (result, data)
    if dtype_of(integers) not in INTEGERS:
        return f"integers of {dtype_of(integers) or 'unknown type'}, expected {' or '.join(INTEGERS)}"
    if dtype_of(real) != "float32":
        return f"real numbers of {dtype_of(real) or 'unknown type'}, expected float32"
    reason = _converted_ok(data)
    if reason is not None:
        return reason
    if any(constant_of(arg).size != 1 for arg in call.args[1:]):  # type: ignore[union-attr]
        return "a scale for each of several channels, expected one for all"
    return numbers_ok(call) or _inverse_ok(call)


def weights_ok(match: Match) -> str | None:
    """Types and numbers of dequantised weights; the product is checked as any other."""
    call = match["numbers"]
    if dtype_of(call.args[0]) not in INTEGERS:
        return f"weights of {dtype_of(call.args[0])}, expected {' or '.join(INTEGERS)}"
    product = match.get("product", match["root"])
    source = product.args[0]
    if dtype_of(source) != "float32" or dtype_of(call) != "float32":
        return f"real numbers of {dtype_of(source)} and {dtype_of(call)}, expected float32"
    if is_constant(source):
        return "constants only"
    shape = shape_of(source)
    if shape is None or shape_of(product) is None:
        return "a shape that is not known at compile time"
    if len(shape) > MAX_RANK or 0 in shape:
        return f"a source of shape {shape}"
    return numbers_ok(call)


def numbers_ok(call: relax.Call) -> str | None:
    """The fault of a conversion's scales and zero points, None if they have none."""
    scale, zero = (constant_of(arg) for arg in call.args[1:])
    shape: Shape = shape_of(call.args[0])  # type: ignore[assignment]
    if scale is None or zero is None:
        return "a scale or zero point that is no constant"
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        return "a scale that is not above 0 and finite"
    axis = int(call.attrs.axis)
    if not -len(shape) <= axis < len(shape) and max(scale.size, zero.size) > 1:
        return f"axis {axis} of a tensor of rank {len(shape)}"
    extent = shape[axis % len(shape)] if shape else 1
    if any(array.size not in (1, extent) for array in (scale, zero)):
        return f"{scale.size} scales and {zero.size} zero points for {extent} channels"
    return None


def _inverse_ok(call: relax.Call) -> str | None:
    """The fault of a scale that kernels, which multiply by its inverse, cannot have."""
    with np.errstate(over="ignore"):
        inverse = np.float32(1) / np.asarray(constant_of(call.args[1]), "float32")
    return None if np.isfinite(inverse).all() else "a scale whose inverse is not finite"


# --- translation -------------------------------------------------------------------------------------------


def translate(c: Composite) -> int:
    """A conversion by itself."""
    call = c.root
    side = "dst" if call.op.name == "relax.quantize" else "src"
    return _converted(c, call, c.value(call.args[0]), side, "quantization")


def dynamic_ok(match: Match) -> str | None:
    """Types and shapes of a conversion by numbers that the model computes, either way."""
    call = match["root"]
    data = call.args[0]
    kind, expected = dtype_of(data), INTEGERS if len(call.args) > 1 else ("float32",)
    if kind not in expected:
        return f"numbers of {kind or 'unknown type'}, expected {' or '.join(expected)}"
    return _converted_ok(data)


def _converted_ok(data: relax.Expr) -> str | None:
    """Shape of what a conversion reads, whatever the numbers are."""
    shape = shape_of(data)
    if shape is None:
        return "a shape that is not known at compile time"
    if not 1 <= len(shape) <= MAX_RANK:
        return f"rank {len(shape)}, expected 1 to {MAX_RANK}"
    if 0 in shape:
        return "an empty tensor"
    return "constants only" if is_constant(data) else None


def translate_dynamic(c: Composite) -> tuple[int, ...]:
    """Integers, scale and zero point of real numbers."""
    src = c.value(c.root.args[0])
    results = {"dst": c.builder.values[src].shape, "made_scale": (1,), "made_zero_point": (1,)}
    types = {"dst": "uint8", "made_scale": "float32", "made_zero_point": "int32"}
    attrs = ir.DynamicQuantization()
    return tuple(c.builder.step_of_several("quantization", attrs, [("src", src)], results, types))


def translate_real(c: Composite) -> int:
    """Real numbers from integers, by numbers that the model computes."""
    roles = ("src", "src_scale", "src_zero_point")
    operands = [(role, c.value(arg)) for role, arg in zip(roles, c.root.args, strict=True)]
    return c.emit("quantization", ir.Quantization(0), *operands)


def weights_of(c: Composite, expr: relax.Expr) -> int:
    """The value of a product's weights, dequantised or as they are."""
    call = c.definition(expr)
    if isinstance(call, relax.Call) and isinstance(call.op, tvm.ir.Op) and call.op.name == "relax.dequantize":
        return _converted(c, call, c.value(call.args[0]), "src", "weights")
    return c.value(expr)


def stored_weights(c: Composite, call: relax.Call, integers: np.ndarray, axis: int) -> int:
    """The dequantised value of a product's weights, whose integers are stored in another order of axes.

    Parameters
    ----------
    axis : along which scales and zero points stand in that order.
    """
    return _converted(c, call, c.builder.constant(integers), "src", "weights", axis)


def _converted(
    c: Composite, call: relax.Call, src: int, side: str, stem: str, axis: int | None = None
) -> int:
    scale, zero = (np.asarray(constant_of(arg)) for arg in call.args[1:])
    shape = c.builder.values[src].shape
    operands = [("src", src), (f"{side}_scale", c.builder.constant(_row(scale, "float32")))]
    if zero.any():
        operands.append((f"{side}_zero_point", c.builder.constant(_row(zero, "int32"))))
    attrs = ir.Quantization(int(call.attrs.axis) % max(len(shape), 1) if axis is None else axis)
    return c.builder.step(stem, attrs, shape, operands, dtype_of(call))


def _row(array: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers as a vector of its own memory, by which the builder knows constants."""
    return np.array(array.reshape(-1), dtype)
