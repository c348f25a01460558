"""Operands for one run of a kernel: small integers, scaled by powers of two, on which sums are exact.

Every product of two operands is a whole multiple of one unit, and no sum of absolute values reaches 2^24 of
them, so float32 has no rounding to do whatever the order of a sum.  Weights are scaled so that sums are a
few units of one around 0: there functions behind a sum (clip, tanh, gelu, ...) tell values apart.

All of them have a place in every type that is computed in, so an operand of a shorter type loses nothing;
what is written in a shorter type is rounded once.

Numbers are drawn from one pool (``drawing``); integers with scales have rules of their own
(``quantized_data``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError

from .drawing import Array, drawn
from .exact import MOVING
from .few_bits_data import few_bits_operand
from .quantized_data import integer_operand

_EXACT = 2**24
_SPREAD = 3.0  # of sums around 0
_FINE = 16.0  # steps of one, in what functions are tried on
_TYPES = {"float32": 2**20, "bfloat16": 2**8}
"""The largest integers, by type, of what is only moved or selected."""

_PRODUCTS = (
    ir.Convolution,
    ir.Deconvolution,
    ir.ConvolutionBackwardWeights,
    ir.MatMul,
    ir.InnerProduct,
    ir.GroupedProduct,
)
_WHOLE = ("bool", "int8", "uint8", "int32", "int64")
"""Types of whole numbers."""
_FEW = 3
"""The largest of them: few, so that equal ones meet."""
_NONE: Mapping[int, Array] = MappingProxyType({})
_DOMAINS = ("log", "sqrt", "pow")  # functions that are tried on positive numbers


def operands(program: ir.Program, turn: int = 0, known: Mapping[int, Array] = _NONE) -> dict[int, Array]:
    """A plain array for every value that the one step of ``program`` reads, by its number.

    Parameters
    ----------
    turn : another one gives other inputs.
    known : an earlier turn's, whose constants are taken again.

    Raises
    ------
    UnsupportedError : an operand is of a type without exact numbers here, or no small integers have exact
        sums of that length.
    """
    step = program.steps[0]
    scaled = any(operand.role in ir.SCALE_ROLES for operand in step.operands)
    product = isinstance(step.attrs, _PRODUCTS)
    terms = depth(program) if product and scaled else 0
    scale = _Scale.of(program) if product and not scaled else None
    found = {number: array for number, array in known.items() if program.values[number].kind == "constant"}
    for number, role, post_op in _reads(step):
        value = program.values[number]
        if value.dtype not in (*_TYPES, *_WHOLE):
            raise UnsupportedError(f"a {value.dtype} operand")
        if number not in found:
            place = number + 1 + turn * len(program.values)
            if isinstance(step.attrs, ir.FewBitsProduct) and post_op is None:
                found[number] = few_bits_operand(step.attrs, program, role, place)
                continue
            integers = integer_operand(program, role, value, place, terms) if scaled else None
            if integers is not None:
                found[number] = integers
                continue
            if role == "indices":
                found[number] = _indices(program, step, value, place)
                continue
            if role == "filled":
                found[number] = _filled(program, step, turn)
                continue
            if role == "ends":
                found[number] = _ends(program, step, value, place)
                continue
            if value.dtype in _WHOLE:
                found[number] = _whole(value, place)
                continue
            use = _Use(role, getattr(post_op or step.attrs, "algorithm", ""))
            kind = numpy_type(value.dtype)
            fitted = _fitted(step, use, static_shape(value.shape), place, scale, _TYPES[value.dtype])
            found[number] = fitted.astype(kind, copy=False)
    return found


def _indices(program: ir.Program, step: ir.Step, value: ir.Value, place: int) -> Array:
    """Indices of a gather or a scatter, from either end."""
    data, shape = static_shape(program.values[step.operand("src")].shape), static_shape(value.shape)
    match step.attrs:
        case ir.Gather(axis=axis) | ir.GatherElements(axis=axis) | ir.ScatterElements(axis=axis):
            extents = np.array(data[axis])
        case ir.GatherNd(batch_axes=first):
            extents = np.array(data[first : first + shape[-1]])
        case _:
            extents = np.array(data[: shape[-1]])
    numbers = drawn(shape, place, _TYPES["float32"]).astype(value.dtype)
    return np.asarray((numbers % (2 * extents) - extents).astype(value.dtype))


def _filled(program: ir.Program, step: ir.Step, turn: int) -> Array:
    """The rows of caches that count: as many as there is room and a mask for, in other turns fewer."""
    shapes = {one.role: static_shape(program.values[one.value].shape) for one in step.operands}
    columns = shapes.get("mask", (1,))[-1]
    room = (columns if columns > 1 else shapes["past_key"][2]) - shapes["key"][2]
    return np.array([room - turn % 2 * room // 2], "int32")


def _ends(program: ir.Program, step: ir.Step, value: ir.Value, place: int) -> Array:
    """Ends of groups in order, some of them empty, and rows behind the last."""
    rows = static_shape(program.values[step.operand("src")].shape)[0]
    numbers = drawn(static_shape(value.shape), place, _TYPES["float32"]).astype(np.int64)
    return np.sort(numbers % (rows + 1)).astype(value.dtype)


def _whole(value: ir.Value, place: int) -> Array:
    numbers = drawn(static_shape(value.shape), place, _FEW)
    return (numbers > 0 if value.dtype == "bool" else numbers).astype(value.dtype)


def depth(program: ir.Program) -> int:
    """Number of products in each sum of the one step of ``program``."""
    step = program.steps[0]
    if isinstance(step.attrs, ir.ConvolutionBackwardWeights):
        samples, _, *rows = static_shape(program.values[step.operand("gradient")].shape)
        return samples * math.prod(rows)
    weights = static_shape(program.values[step.operand("weights")].shape)
    match step.attrs:
        case ir.MatMul() | ir.GroupedProduct():
            return weights[-2]
        case ir.InnerProduct():
            return math.prod(weights[1:])
        case ir.Convolution(groups=groups) | ir.Deconvolution(groups=groups):
            return math.prod(weights[1 if groups == 1 else 2 :])
    raise KeyError(step.kind)


@dataclass(frozen=True)
class _Scale:
    """Largest integer of both factors of a product, and the power of two that its weights are divided by."""

    most: int
    divisor: float

    @classmethod
    def of(cls, program: ir.Program) -> _Scale:
        terms = depth(program)
        for most in (4, 3, 2, 1):
            spread = math.sqrt(terms) * most * (most + 1) / 3  # of sums of integers up to it
            divisor = 2.0 ** max(0, round(math.log2(max(1.0, spread) / _SPREAD)))
            # The sum, a bias and what post-ops add, in units.
            if terms * most * most + 12 * divisor < _EXACT:
                return cls(most, divisor)
        raise UnsupportedError(f"sums of {terms} products")


def _reads(step: ir.Step) -> list[tuple[int, str, ir.PostOp | None]]:
    """Lists the values that a step reads: the value, its role, and the post-op that it belongs to."""
    pairs: list[tuple[int, str, ir.PostOp | None]] = [
        (operand.value, operand.role, None) for operand in step.operands if not operand.is_result
    ]
    pairs += [(p.value, "post_op", p) for p in step.post_ops if isinstance(p, ir.BinaryPostOp)]
    return pairs


@dataclass(frozen=True)
class _Use:
    """The use of an operand: its role, and the algorithm of the step or post-op that reads it."""

    role: str
    algorithm: str


def _fitted(
    step: ir.Step, use: _Use, shape: tuple[int, ...], place: int, scale: _Scale | None, wide: int
) -> Array:
    """Numbers that suit what an operand is read for."""
    if isinstance(step.attrs, ir.Recurrent):
        # Rows of a few units: activations are neither flat nor all at one end there.
        depth = shape[2] if use.role in ("weights", "recurrence") else 1
        return drawn(shape, place, divisor=4.0 * math.sqrt(depth))
    if isinstance(step.attrs, ir.SqueezeExcite) and use.role.endswith("weights"):
        # Gates that differ, though means lie close together.
        return drawn(shape, place, divisor=math.sqrt(shape[1]))
    if isinstance(step.attrs, ir.RecurrentTraining | ir.RecurrentBackward):
        # Likewise; gates that were kept lie within 1, as results of their functions do.
        depth = shape[2] if use.role == "recurrence" else 1
        kept = use.role == "src" and isinstance(step.attrs, ir.RecurrentBackward)
        return drawn(shape, place, divisor=(8.0 if kept else 4.0) * math.sqrt(depth))
    if isinstance(step.attrs, ir.Attention) and use.role in ("src", "key", "past_key"):
        # Scores of a few units: weights are neither equal nor all but one of them 0.
        return drawn(shape, place, divisor=math.sqrt(4.0 * abs(step.attrs.scale)) * shape[3] ** 0.25)
    if scale is not None and use.role in ("src", "weights", "gradient"):
        return drawn(shape, place, scale.most, 1.0 if use.role == "src" else scale.divisor)
    if use.role == "grid":  # from -4/3 to 4/3
        return drawn(shape, place, 64, 48.0)
    if use.role in ("depthwise_weights", "weights"):  # those of a prelu
        return drawn(shape, place, divisor=4.0)
    if use.role == "src":
        return _argument(step, shape, place, wide)
    numbers = drawn(shape, place)
    if use.algorithm == "div" and use.role in ("src1", "post_op"):
        return _powers(numbers, 2)
    if use.role in ("variance", "scale"):
        return np.abs(numbers) + np.float32(1)
    return numbers


def _argument(step: ir.Step, shape: tuple[int, ...], place: int, wide: int) -> Array:
    """The source of a step that multiplies it by no weights."""
    match step.attrs:
        case ir.Pooling(algorithm="max") | ir.Reduction(algorithm="max" | "min"):
            return drawn(shape, place, wide)
        case ir.Eltwise(algorithm=algorithm):
            fine = drawn(shape, place, 64, _FINE)
            return np.abs(fine) + np.float32(1 / _FINE) if algorithm in _DOMAINS else fine
        case ir.Cast() | ir.ExtremeIndex() | ir.Ranking():
            return drawn(shape, place, 64, _FINE)
        case ir.DynamicQuantization():  # a zero point that is not half way between two
            return np.maximum(drawn(shape, place, 512, _FINE), np.float32(-5))
        case ir.Reduction(algorithm="mul"):
            return _powers(drawn(shape, place), 1)
    return drawn(shape, place, wide if isinstance(step.attrs, MOVING) else 4)


def _powers(drawn: Array, most: int) -> Array:
    """Powers of two with either sign; their exponents go from 0 to ``most``, or half as often below it."""
    exponents = np.where(np.abs(drawn) > 3, drawn / 4, 0) if most == 1 else np.abs(drawn) % (most + 1)
    return np.asarray(np.where(drawn < 0, -1, 1) * np.exp2(exponents), np.float32)
