"""The parts of a real number, its sign, power and bits: taken apart, put together, seen as another type."""

from __future__ import annotations

import math

from tvm import relax, te, tirx

from .....errors import UnsupportedError
from ...node import Emitter, Node, dtype_of
from ..table import converts


@converts("nextafter.default", "copysign.Tensor", "copysign.Scalar")
def _of_two(emitter: Emitter, node: Node) -> relax.Expr:
    """C's function of two numbers of the result's type."""
    dtype, name = node.result.dtype, node.operator.split(".")[1]
    dims = node.result.shape
    left, right = (emitter.broadcast(emitter.operand(node[one], dtype), dims) for one in ("self", "other"))
    function = name if dtype == "float64" else f"{name}f"

    def kernel(left: te.Tensor, right: te.Tensor) -> te.Tensor:
        return te.compute(
            left.shape, lambda *at: tirx.call_pure_extern(dtype, function, left(*at), right(*at)), name
        )

    return emitter.builder.emit_te(kernel, left, right, primfunc_name_hint=name)


@converts("signbit.default")
def _has_sign(emitter: Emitter, node: Node) -> relax.Expr:
    """Whether a number's sign is below 0; that of -0.0 and of a NaN is what their bits say."""
    source, dtype = node["self"], dtype_of(node["self"])
    if dtype == "bool":
        return emitter.emit(relax.op.zeros_like(source))
    if "float" in dtype:
        source = emitter.emit(_bits(emitter, source, dtype.replace("bfloat", "int").replace("float", "int")))
    return emitter.emit(relax.op.less(source, relax.const(0, dtype_of(source))))


def _bits(emitter: Emitter, source: relax.Expr, dtype: str) -> relax.Expr:
    """The bits of elements as elements of another type of as many."""

    def kernel(tensor: te.Tensor) -> te.Tensor:
        return te.compute(tensor.shape, lambda *at: tirx.reinterpret(dtype, tensor(*at)), "bits")

    return emitter.builder.emit_te(kernel, source, primfunc_name_hint="bits")


@converts("view.dtype")
def _as_other_type(emitter: Emitter, node: Node) -> relax.Expr:
    """Memory as elements of another type; those of a last axis are cut or joined, the lowest bits first."""
    source, of, to = node["self"], dtype_of(node["self"]), node.result.dtype
    if of == to:
        return source
    if "bool" in (of, to):
        raise UnsupportedError("bits of booleans as numbers; expected a cast")
    old, new = (int("".join(filter(str.isdigit, one))) for one in (of, to))
    if old == new:
        return _bits(emitter, source, to)
    times = max(old, new) // min(old, new)
    wide, narrow = f"uint{max(old, new)}", f"uint{min(old, new)}"
    dims = list(node.result.shape)

    def kernel(tensor: te.Tensor) -> te.Tensor:
        def element(*at: tirx.Var) -> tirx.Expr:
            *front, last = at
            if new < old:
                whole = tirx.reinterpret(wide, tensor(*front, tirx.floordiv(last, times)))
                places = tirx.floormod(last, times).astype(wide) * tirx.const(new, wide)
                return tirx.reinterpret(to, (whole >> places).astype(narrow))
            total = tirx.const(0, wide)
            for part in range(times):
                bits = tirx.reinterpret(narrow, tensor(*front, last * times + part)).astype(wide)
                total = total | (bits << tirx.const(part * old, wide))
            return tirx.reinterpret(to, total)

        return te.compute(dims, element, "bits")

    return emitter.builder.emit_te(kernel, source, primfunc_name_hint="bits")


@converts("angle.default")
def _angle(emitter: Emitter, node: Node) -> relax.Expr:
    """The angle of a real number: 0, or half a turn for those below 0."""
    source, dtype = emitter.cast(node["self"], node.result.dtype), node.result.dtype
    emit, zero = emitter.emit, relax.const(0.0, dtype)
    below = emit(relax.op.less(source, zero))
    found = emit(relax.op.where(below, relax.const(math.pi, dtype), zero))
    return emit(relax.op.where(emit(relax.op.isnan(source)), source, found))


@converts("frexp.Tensor")
def _taken_apart(emitter: Emitter, node: Node) -> list[relax.Expr]:
    """A number as one from 0.5 up to 1 and a power of two."""
    source, dtype = node["self"], dtype_of(node["self"])
    function = "" if dtype == "float64" else "f"

    def power(tensor: te.Tensor) -> te.Tensor:
        def element(*at: tirx.Var) -> tirx.Expr:
            number = tensor(*at)
            plain = tirx.And(tirx.isfinite(number), tirx.Not(number.equal(tirx.const(0, dtype))))
            exponent = tirx.call_pure_extern("int32", f"ilogb{function}", number) + 1
            return tirx.Select(plain, exponent, tirx.const(0, "int32"))

        return te.compute(tensor.shape, element, "power")

    def rest(tensor: te.Tensor, powers: te.Tensor) -> te.Tensor:
        return te.compute(
            tensor.shape,
            lambda *at: tirx.call_pure_extern(dtype, f"scalbn{function}", tensor(*at), -powers(*at)),
            "rest",
        )

    powers = emitter.builder.emit_te(power, source, primfunc_name_hint="frexp_power")
    return [emitter.builder.emit_te(rest, source, powers, primfunc_name_hint="frexp_rest"), powers]


@converts("ldexp.Tensor")
def _put_together(emitter: Emitter, node: Node) -> relax.Expr:
    dtype = node.result.dtype
    power = emitter.emit(relax.op.power(relax.const(2.0, dtype), emitter.cast(node["other"], dtype)))
    return emitter.emit(relax.op.multiply(emitter.cast(node["self"], dtype), power))
