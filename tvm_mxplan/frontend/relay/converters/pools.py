"""Pooling over windows, over whole images, and to given sizes."""

from __future__ import annotations

from tvm import relax

from ..node import Node, Value
from .layouts import PLAIN, padding, reordered
from .table import converts


@converts(
    *(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in PLAIN),
)
def _pool(node: Node) -> Value:
    rank, kind = int(node.operator[-2]), node.operator[3:6]
    stated = node.text("layout")
    src = reordered(node, node.tensor(0), stated, PLAIN[rank])
    more = {"count_include_pad": node.flag("count_include_pad")} if kind == "avg" else {}
    dst = getattr(relax.op.nn, f"{kind}_pool{rank}d")(
        src,
        pool_size=node.each("pool_size", rank),
        strides=node.each("strides", rank),
        padding=padding(node, rank),
        dilation=node.each("dilation", rank),
        ceil_mode=node.flag("ceil_mode"),
        layout=PLAIN[rank],
        **more,
    )
    return reordered(node, node.emit(dst), PLAIN[rank], node.text("out_layout") or stated)


@converts("nn.global_avg_pool2d", "nn.global_max_pool2d")
def _global_pool(node: Node) -> Value:
    stated = node.text("layout")
    src = reordered(node, node.tensor(0), stated, PLAIN[2])
    dst = _over_all(node, src, node.operator.removeprefix("nn.global_")[:3], 2)
    return reordered(node, dst, PLAIN[2], node.text("out_layout") or stated)


@converts(
    *(f"nn.adaptive_{kind}_pool{rank}d" for kind in ("max", "avg") for rank in PLAIN),
)
def _adaptive_pool(node: Node) -> Value:
    """Over all of an image, over windows of one size where those divide it, else as TVM has it."""
    rank, kind = int(node.operator[-2]), node.operator.removeprefix("nn.adaptive_")[:3]
    stated = node.text("layout")
    src = reordered(node, node.tensor(0), stated, PLAIN[rank])
    extents = node.shape(src)[2:]
    sizes = node.each("output_size", rank) if node.attribute("output_size") else extents
    if any(isinstance(size, int) and size < 1 for size in sizes):
        node.wrong(f"output_size = {sizes}; expected numbers above 0")
    if all(isinstance(size, int) and size == 1 for size in sizes):
        dst = _over_all(node, src, kind, rank)
    elif all(
        isinstance(extent, int) and isinstance(size, int) and size > 0 and not extent % size
        for extent, size in zip(extents, sizes, strict=True)
    ):
        window = [extent // size for extent, size in zip(extents, sizes, strict=True)]
        dst = node.emit(getattr(relax.op.nn, f"{kind}_pool{rank}d")(src, window, strides=window))
    elif kind == "avg":
        dst = node.emit(getattr(relax.op.nn, f"adaptive_avg_pool{rank}d")(src, sizes))
    else:
        node.unsupported(f"{sizes} of {extents} pixels; expected sizes that divide the image, or 1")
    return reordered(node, dst, PLAIN[rank], node.text("out_layout") or stated)


def _over_all(node: Node, src: relax.Expr, kind: str, rank: int) -> relax.Expr:
    """One number for each channel, with axes of extent 1 for the image."""
    reduce = relax.op.mean if kind == "avg" else relax.op.max
    return node.emit(reduce(src, list(range(2, rank + 2)), keepdims=True))
