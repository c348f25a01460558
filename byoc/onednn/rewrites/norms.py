"""Layer norms of whole images, in the order of channels last.

Before   v2 = layer_norm(x [N, C, H, W] seen as [N, C * H * W]), seen as [N, C, H, W]
After    v1 = x copied, channels last;  v2 = layer_norm(v1 seen as [N, H * W * C]), seen as [N, C, H, W]

The mean and the variance of a sample are the same in any order, and a group norm of one group is such a norm.
The copy is no work where the image is stored with its channels last, as images mostly are.  In the order of
the first line an image would be brought into the plain layout, and back behind the norm.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import permute_layout, plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static
from tvm_mxplan.core.program.operands import reorder

_MAKERS = (
    ir.Convolution,
    ir.Deconvolution,
    ir.Pooling,
    ir.Resampling,
    ir.Binary,
    ir.Eltwise,
    ir.Concat,
)
"""Steps whose images may be stored in several layouts."""


def normalize_channels_last(graph: Graph) -> None:
    """Rewrites each layer norm of an image's samples whose result is read as that image alone."""
    for at, step in enumerate(graph.steps):
        if not step or not isinstance(step.attrs, ir.LayerNormalization) or len(step.operands) != 2:
            continue
        image = _image(graph, step.operand("src"))
        results = None if image is None else _results(graph, step.dst, graph.values[image])
        if image is not None and results is not None:
            _rewrite(graph, at, step, image, results)


def _image(graph: Graph, rows: int) -> int | None:
    """The image whose samples ``rows`` has one after the other; None if that is seen in another order."""
    last = graph.values[rows].shape[-1]
    for number in graph.chain(rows):
        value = graph.values[number]
        rank = len(value.shape)
        if value.layout != plain_layout(rank) or value.alias_offset != 0 or value.kind != "local":
            return None
        if 3 <= rank <= 5 and is_static(value.shape) and value.shape[1] != 1:
            several = math.prod(value.shape[2:]) != 1  # type: ignore[arg-type]
            whole = math.prod(value.shape[1:]) == last  # type: ignore[arg-type]
            return number if several and whole and _is_made_here(graph, number) else None
    return None


def _is_made_here(graph: Graph, number: int) -> bool:
    at = graph.writer(graph.root(number))
    maker = None if at is None else graph.steps[at]
    return maker is not None and isinstance(maker.attrs, _MAKERS)


def _results(graph: Graph, dst: int, image: ir.Value) -> list[int] | None:
    """The values read of ``dst``, all of it views in the shape of ``image``; None if anything else is."""
    if graph.values[dst].kind != "local" or graph.values[dst].alias_of >= 0 or graph.reads(dst):
        return None
    found, left = list[int](), graph.views(dst)
    while left:
        view = left.pop()
        value = graph.values[view]
        if value.layout != plain_layout(len(value.shape)) or value.alias_offset != 0 or value.kind != "local":
            return None
        if value.shape == image.shape:
            found.append(view)
        elif graph.reads(view) or graph.writer(view) is not None:
            return None
        else:
            left += graph.views(view)
    return found or None


def _rewrite(graph: Graph, at: int, step: ir.Step, image: int, results: list[int]) -> None:
    base, src, dst = graph.values[image], graph.values[step.operand("src")], graph.values[step.dst]
    rank = len(base.shape)
    to_last, back = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
    shape = tuple(base.shape[axis] for axis in to_last)

    def view(of: int, like: ir.Value, shape: tuple, layout: str) -> int:
        return graph.add(ir.Value(like.name, shape, like.dtype, "local", layout, alias_of=of))

    turned = view(image, base, shape, permute_layout(base.layout, to_last))
    copied = graph.add_local(f"{base.name}.last", shape, base.dtype)
    graph.insert_before(at, reorder(f"{step.name}.reorder", turned, copied))
    made = graph.add_local(dst.name, dst.shape, dst.dtype)
    operands = (ir.Operand("src", view(copied, src, src.shape, src.layout)), ir.Operand("dst", made))
    graph.replace(at, replace(step, operands=operands))
    last = view(made, dst, shape, plain_layout(rank))
    for result in results:
        seen = view(last, graph.values[result], base.shape, permute_layout(plain_layout(rank), back))
        graph.rename(result, seen)
