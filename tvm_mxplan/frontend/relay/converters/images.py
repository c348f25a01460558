"""Images in other sizes, and channels that become pixels."""

from __future__ import annotations

from tvm import relax

from ..node import Node, Value, dtype_of
from .layouts import PLAIN, reordered
from .table import converts

_METHODS = {"nearest_neighbor": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
_COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize")
_SCALED = {"nearest_neighbor": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}


@converts("image.resize1d", "image.resize2d", "image.resize3d")
def _resize(node: Node) -> Value:
    rank = int(node.operator[-2])
    if rank == 1:
        return _resized_line(node)
    stated = node.text("layout")
    src = reordered(node, node.tensor(0), stated, PLAIN[rank])
    dst = _resized(node, src, node.each("size", rank), rank)
    return reordered(node, dst, PLAIN[rank], stated)


def _resized_line(node: Node) -> Value:
    """A line as an image of one row, which keeps its height."""
    stated = node.text("layout")
    src = node.emit(relax.op.expand_dims(reordered(node, node.tensor(0), stated, PLAIN[1]), [2]))
    dst = _resized(node, src, [1, *node.each("size", 1)], 2)
    return reordered(node, node.emit(relax.op.squeeze(dst, [2])), PLAIN[1], stated)


def _resized(node: Node, src: relax.Expr, size: list[int], rank: int) -> relax.Expr:
    method, mode = node.text("method"), node.text("coordinate_transformation_mode")
    if method not in _METHODS:
        node.wrong(f"method = {method!r}; expected {', '.join(_METHODS)}")
    if not all(0 < extent < 1 << 31 for extent in size):
        node.wrong(f"size = {size}; expected numbers above 0")
    if mode not in _COORDINATES:
        node.wrong(f"coordinate_transformation_mode = {mode!r}; expected {', '.join(_COORDINATES)}")
    if mode == "tf_crop_and_resize":
        node.unsupported("coordinates of a region; expected another coordinate_transformation_mode")
    if node.dtype("out_dtype", dtype_of(src)) != dtype_of(src):
        node.unsupported(
            f"results of {node.text('out_dtype')} from {dtype_of(src)}; expected one element type"
        )
    resize = relax.op.image.resize2d if rank == 2 else relax.op.image.resize3d
    return node.emit(
        resize(
            src,
            size,
            layout=PLAIN[rank],
            method=method,
            coordinate_transformation_mode=mode,
            rounding_method=node.text("rounding_method"),
            cubic_alpha=node.number("cubic_alpha"),
            cubic_exclude=node.integer("cubic_exclude"),
            extrapolation_value=node.number("extrapolation_value"),
        )
    )


@converts("nn.upsampling")
def _upsampling(node: Node) -> Value:
    stated, method = node.text("layout"), node.text("method")
    if method not in _SCALED:
        node.wrong(f"method = {method!r}; expected {', '.join(_SCALED)}")
    src = reordered(node, node.tensor(0), stated, PLAIN[2])
    factors = (node.number("scale_h"), node.number("scale_w"))
    if not all(0 < factor < _LARGEST for factor in factors):
        node.wrong(f"scales {factors}; expected numbers above 0 and below {_LARGEST:,}")
    size = [_scaled(extent, factor) for extent, factor in zip(node.fixed(src)[2:], factors, strict=True)]
    corners = node.flag("align_corners")
    dst = node.emit(
        relax.op.image.resize2d(
            src,
            size,
            layout=PLAIN[2],
            method=_SCALED[method],
            coordinate_transformation_mode="align_corners" if corners else "asymmetric",
            rounding_method="round" if corners else "floor",
            cubic_alpha=-0.5,
        )
    )
    return reordered(node, dst, PLAIN[2], stated)


_LARGEST = 1 << 16


def _scaled(extent: int, factor: float) -> int:
    """The nearest number of pixels, a half away from 0."""
    return int(extent * factor + 0.5)


@converts("nn.depth_to_space", "nn.space_to_depth")
def _sub_pixels(node: Node) -> Value:
    stated, block = node.text("layout"), node.integer("block_size")
    if block < 1:
        node.wrong(f"block_size = {block}; expected a number from 1 on")
    src = reordered(node, node.tensor(0), stated, PLAIN[2])
    batch, channels, height, width = node.fixed(src)
    if node.operator == "nn.depth_to_space":
        depth = channels // (block * block)
        by_depth = node.text("mode") == "DCR"
        parts = (
            [batch, block, block, depth, height, width]
            if by_depth
            else [batch, depth, block, block, height, width]
        )
        order = [0, 3, 4, 1, 5, 2] if by_depth else [0, 1, 4, 2, 5, 3]
        shape = [batch, depth, height * block, width * block]
    else:
        parts = [batch, channels, height // block, block, width // block, block]
        order = [0, 3, 5, 1, 2, 4]
        shape = [batch, channels * block * block, height // block, width // block]
    dst = node.emit(relax.op.reshape(src, parts))
    dst = node.emit(relax.op.permute_dims(dst, order))
    return reordered(node, node.emit(relax.op.reshape(dst, shape)), PLAIN[2], stated)
