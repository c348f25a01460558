"""Powers of whole numbers, and of bases and exponents of different types."""

from __future__ import annotations

from tvm import relax

from ...node import Emitter, Node, NotTaken
from ...values import Value, dtype_of
from ..numbers import constant, is_integer
from ..table import converts


@converts("Pow")
def _pow(emitter: Emitter, node: Node) -> Value:
    """Bases and exponents of different types; the base's is the result's."""
    base, exponent = emitter.tensor(node.input(0)), emitter.tensor(node.input(1))
    dtype, other = dtype_of(base), dtype_of(exponent)
    if not is_integer(dtype):
        if other == dtype:
            raise NotTaken
        return emitter.emit(relax.op.power(base, emitter.emit(relax.op.astype(exponent, dtype))))
    if is_integer(other):
        return _whole_power(emitter, base, exponent)
    wide = relax.op.power(relax.op.astype(base, "float64"), relax.op.astype(exponent, "float64"))
    return emitter.emit(relax.op.astype(emitter.emit(wide), dtype))


def _whole_power(emitter: Emitter, base: relax.Expr, exponent: relax.Expr) -> relax.Expr:
    """By squares: exact as long as the result is; towards zero by exponents below 0, 0 for what has none."""
    emit, dtype, kind = emitter.emit, dtype_of(base), dtype_of(exponent)
    # Beyond 63, only -1, 0 and 1 stay within the type, and whether the exponent is odd decides.
    last = relax.op.add(constant(62, kind), relax.op.bitwise_and(exponent, constant(1, kind)))
    small = emit(relax.op.where(relax.op.greater(exponent, constant(63, kind)), last, exponent))
    one, start, result = constant(1, dtype), base, None
    left = emit(relax.op.astype(small, dtype))
    for _ in range(6):
        odd = relax.op.equal(relax.op.bitwise_and(left, one), one)
        factor = emit(relax.op.where(odd, base, one))
        result = factor if result is None else emit(relax.op.multiply(result, factor))
        left = emit(relax.op.right_shift(left, one))
        base = emit(relax.op.multiply(base, base))
    assert result is not None
    if kind.startswith("u"):
        return result
    unit = relax.op.equal(start, one)
    if not dtype.startswith("u"):
        unit = relax.op.logical_or(unit, relax.op.equal(start, constant(-1, dtype)))
    stays = emit(relax.op.logical_or(unit, relax.op.greater_equal(exponent, constant(0, kind))))
    return emit(relax.op.where(stays, result, constant(0, dtype)))
