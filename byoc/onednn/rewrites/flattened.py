"""Dense layers that read an image as it stands, in whatever layout that is.

Before   v1 = pooling(v0) [N,C,H,W];  v2 = v1 seen as [N,C*H*W];  v3 = matmul(v2, w)
After    v1 = pooling(v0) [N,C,H,W];  v3 = inner_product(v1, w seen as [O,C,H,W])

A flattened image has to be plain; an inner product takes it channels last too, since its constant weights
are packed in the order of the image.  Networks that end in dense layers lose a reorder in the middle.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import permute_layout, plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static


def read_images(graph: Graph) -> None:
    """Turn each matrix product of a flattened image and constant weights into an inner product."""
    for at, step in enumerate(graph.steps):
        if not step or not isinstance(step.attrs, ir.MatMul) or len(graph.values[step.dst].shape) != 2:
            continue
        image = _flattened_image(graph, step.operand("src"))
        if image is None or graph.constant(step.operand("weights")) is None:
            continue
        roles = {operand.role: operand.value for operand in step.operands}
        roles |= {"src": image, "weights": _filters(graph, roles["weights"], image)}
        if "bias" in roles:
            roles["bias"] = _view(graph, roles["bias"], graph.values[step.dst].shape[1:], "a")
        operands = tuple(ir.Operand(role, value) for role, value in roles.items())
        graph.replace(at, replace(step, attrs=ir.InnerProduct(), operands=operands))


def _flattened_image(graph: Graph, number: int) -> int | None:
    """The image of more than one pixel that ``number`` is a plain view of, one row for each sample."""
    view = graph.values[number]
    if view.alias_of < 0 or view.alias_offset != 0 or view.layout != plain_layout(2):
        return None
    image = graph.values[view.alias_of]
    if image.kind != "local" or not 3 <= len(image.shape) <= 5 or not is_static(image.shape[1:]):
        return None
    sizes = math.prod(image.shape[1:]), math.prod(image.shape[2:])  # type: ignore[arg-type]
    rows = image.layout == plain_layout(len(image.shape)) and image.shape[0] == view.shape[0]
    return view.alias_of if rows and sizes[0] == view.shape[1] and sizes[1] > 1 else None


def _filters(graph: Graph, weights: int, image: int) -> int:
    """[K, O] weights seen as [O, C, H, W]; the bytes stay."""
    stored = graph.values[weights]
    shape = (stored.shape[1], *graph.values[image].shape[1:])
    rank = len(shape)
    by_columns = stored.layout == plain_layout(2)
    layout = (
        permute_layout(plain_layout(rank), [rank - 1, *range(rank - 1)]) if by_columns else plain_layout(rank)
    )
    return _view(graph, weights, shape, layout)


def _view(graph: Graph, constant: int, shape: tuple[object, ...], layout: str) -> int:
    value = graph.values[constant]
    return graph.add(ir.Value(value.name, shape, value.dtype, "local", layout, alias_of=constant))  # type: ignore[arg-type]
