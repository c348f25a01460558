"""Sums and products, whose elements PyTorch widens: of booleans and integers they are int64."""

from __future__ import annotations

from collections.abc import Callable

from tvm import relax

from ..node import Emitter, Node, axes_of, dims_of, dtype_of
from .table import converts


@converts("cumsum.default", "cumprod.default")
def _cumulative(emitter: Emitter, node: Node) -> relax.Expr:
    operators: dict[str, Callable[..., relax.Expr]] = {
        "aten.cumsum.default": relax.op.cumsum,
        "aten.cumprod.default": relax.op.cumprod,
    }
    source = emitter.cast(node["self"], node.result.dtype)
    if not node.result.shape:
        return source
    return emitter.emit(operators[node.operator](source, node["dim"]))


@converts("sum.default", "sum.dim_IntList", "prod.default", "prod.dim_int")
def _reduced(emitter: Emitter, node: Node) -> relax.Expr:
    operator = relax.op.sum if node.operator.startswith("aten.sum") else relax.op.prod
    source = emitter.cast(node["self"], node.result.dtype)
    keep = bool(node.operands.get("keepdim")) and bool(node.result.shape)
    return emitter.emit(operator(source, axes_of(node), keepdims=keep))


@converts("amax.default", "amin.default", "max.default", "min.default")
def _extreme(emitter: Emitter, node: Node) -> relax.Expr:
    operator = relax.op.max if "max." in node.operator else relax.op.min
    source, dtype = node["self"], node.result.dtype
    if not dims_of(source):
        return source
    if dtype == "bool":  # kernels know no least boolean
        source = emitter.cast(source, "int8")
    return emitter.cast(
        emitter.emit(operator(source, axes_of(node), keepdims=bool(node.operands.get("keepdim")))), dtype
    )


@converts("argmax.default", "argmin.default")
def _where_extreme(emitter: Emitter, node: Node) -> relax.Expr:
    operator = relax.op.argmax if ".argmax." in node.operator else relax.op.argmin
    source = node["self"]
    if not dims_of(source):
        return relax.const(0, "int64")
    if dtype_of(source) == "bool":
        source = emitter.cast(source, "int8")
    found = emitter.emit(operator(source, axes_of(node), keepdims=bool(node["keepdim"])))
    return emitter.cast(found, "int64")


@converts("max.dim", "min.dim")
def _extreme_and_where(emitter: Emitter, node: Node) -> list[relax.Expr]:
    """The extreme along an axis, and where it stands first."""
    largest = ".max." in node.operator
    values, indices = (relax.op.max, relax.op.argmax) if largest else (relax.op.min, relax.op.argmin)
    if not dims_of(node["self"]):
        return [node["self"], relax.const(0, "int64")]
    keep, source = node["keepdim"], node["self"]
    if dtype_of(source) == "bool":  # kernels know no least boolean
        source = emitter.cast(source, "int8")
    if emitter.trains and "float" in dtype_of(node["self"]):
        found = first_extreme(emitter, node["self"], node["dim"], largest=largest)
        return found if keep else [emitter.emit(relax.op.squeeze(one, [node["dim"]])) for one in found]
    extreme = emitter.emit(values(source, node["dim"], keepdims=keep))
    return [
        emitter.cast(extreme, dtype_of(node["self"])),
        emitter.cast(emitter.emit(indices(source, node["dim"], keepdims=keep)), "int64"),
    ]


def first_extreme(emitter: Emitter, source: relax.Expr, axis: int, *, largest: bool) -> list[relax.Expr]:
    """The extreme of each row along an axis, which is kept, and its place.

    Of equal ones it is the first, which alone gets the gradient: that of a reduction goes to all of them.
    """
    operator = relax.op.argmax if largest else relax.op.argmin
    places = emitter.cast(emitter.emit(operator(source, axis, keepdims=True)), "int64")
    return [emitter.emit(relax.op.gather_elements(source, places, axis)), places]
