"""Folds work into constants and attributes before anything runs.

    pad (zeros, spatial)  -> convolution or pooling   becomes padding of the latter
    * number -> convolution or matmul         becomes other weights
    convolution -> * scale for each channel -> + shift   becomes other weights and a bias (batch norm)
    layer norm -> * scale -> + shift, along the last axis   becomes operands of the former
    * scale -> + shift -> * scale -> ...      becomes one scale and one shift (see ``affine``)

Before   v1 = convolution(x, w);  v2 = binary mul(v1, s);  v3 = binary add(v2, t)
After    v3 = convolution(x, w * s, bias = t)

What goes into weights is computed in float64 and rounded once, and only where float32 holds it.  Shifts may
cancel with the sums that a convolution makes, which have errors of their own size already.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static

from ..broadcasting import is_per_channel
from . import affine

_WEIGHTED = (ir.Convolution, ir.Deconvolution, ir.MatMul)


def fold(graph: Graph) -> None:
    """Apply every folding once, in the order of the module's text."""
    for at in range(len(graph.steps)):
        _fold_pad(graph, at)
    for at in range(len(graph.steps)):
        _fold_scaled_source(graph, at)
    for at in range(len(graph.steps)):
        _fold_into_weights(graph, at)
    for at in range(len(graph.steps)):
        _fold_into_layer_norm(graph, at)
    for at in range(len(graph.steps)):
        _merge_affine(graph, at)


def _fold_pad(graph: Graph, at: int) -> None:
    step = graph.steps[at]
    if not step or not isinstance(step.attrs, ir.Convolution | ir.Pooling):
        return
    producer = graph.producer(step.operand("src"))
    pad = graph.steps[producer] if producer is not None else None
    borders = _zero_borders(graph, pad) if pad else None
    if not pad or not borders:
        return
    src = pad.operand("src")
    attrs = _padded(step.attrs, *borders)
    if isinstance(attrs, ir.Pooling) and not _windows_meet(attrs, graph.values[src], graph.values[step.dst]):
        return
    graph.merge(producer, at, _with_source(step, src, attrs))  # type: ignore[arg-type]


def _zero_borders(graph: Graph, pad: ir.Step) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Zeros that ``pad`` puts before and after each spatial axis; None if it does anything else."""
    if not isinstance(pad.attrs, ir.Pad) or pad.attrs.value != 0.0 or any(pad.attrs.begin[:2]):
        return None
    source, padded = graph.values[pad.operand("src")].shape, graph.values[pad.dst].shape
    if source[:2] != padded[:2] or not is_static((*source[2:], *padded[2:])):
        return None
    begin = pad.attrs.begin[2:]
    end = tuple(p - s - b for s, p, b in zip(source[2:], padded[2:], begin, strict=True))  # type: ignore[operator]
    return begin, end


def _padded(
    attrs: ir.Convolution | ir.Pooling, begin: tuple[int, ...], end: tuple[int, ...]
) -> ir.Convolution | ir.Pooling:
    """``attrs`` with more padding; pooling stores what is before the image only."""
    more = (*begin, *end) if isinstance(attrs, ir.Convolution) else begin
    return replace(attrs, padding=tuple(a + b for a, b in zip(attrs.padding, more, strict=True)))


def _windows_meet(attrs: ir.Pooling, src: ir.Value, dst: ir.Value) -> bool:
    """True if zeros may be padding of ``attrs``: it counts them, and each window meets the image."""
    if attrs.algorithm != "avg_include_padding" or not is_static(dst.shape):
        return False
    axes = zip(attrs.kernel, attrs.strides, attrs.padding, src.shape[2:], dst.shape[2:], strict=True)
    return all(
        before < kernel and (count - 1) * stride - before < size  # type: ignore[operator]
        for kernel, stride, before, size, count in axes
    )


def _with_source(step: ir.Step, src: int, attrs: ir.Attributes) -> ir.Step:
    operands = tuple(
        ir.Operand("src", src) if operand.role == "src" else operand for operand in step.operands
    )
    return replace(step, attrs=attrs, operands=operands)


def _per_channel(graph: Graph, step: ir.Step | None, algorithm: str, axis: int = 1) -> np.ndarray | None:
    """The vector that ``step`` multiplies with or adds along ``axis``, as a flat array in float64.

    An elementwise linear step with a single number counts as well.
    """
    if not step or step.post_ops:
        return None
    shape = graph.values[step.dst].shape
    extent = shape[axis] if axis < len(shape) else None
    if not isinstance(extent, int):
        return None
    if isinstance(step.attrs, ir.Eltwise) and step.attrs.algorithm == "linear":
        number = {"mul": step.attrs.alpha, "add": step.attrs.beta}[algorithm]
        neutral = step.attrs.beta == 0.0 if algorithm == "mul" else step.attrs.alpha == 1.0
        return np.full(extent, number, "float64") if neutral else None
    if not isinstance(step.attrs, ir.Binary) or step.attrs.algorithm not in (algorithm, _INVERSE[algorithm]):
        return None
    if graph.values[step.operand("src")].shape != shape:
        return None
    array = graph.constant(step.operand("src1"))
    if array is None or not is_per_channel(array.shape, shape, axis):
        return None
    flat = array.reshape(-1) * np.ones(extent, "float64")
    if step.attrs.algorithm == _INVERSE[algorithm]:
        if algorithm == "mul" and not flat.all():
            return None
        flat = 1 / flat if algorithm == "mul" else -flat
    return flat


_INVERSE = {"mul": "div", "add": "sub"}


def _fold_into_weights(graph: Graph, at: int) -> None:
    step = graph.steps[at]
    if (
        not step
        or not isinstance(step.attrs, ir.Binary | ir.Eltwise)
        or len(graph.values[step.dst].shape) < 2
    ):
        return
    producer = graph.producer(step.operand("src"))
    root = graph.steps[producer] if producer is not None else None
    if not root or not isinstance(root.attrs, _WEIGHTED) or root.post_ops:
        return
    rank = len(graph.values[root.dst].shape)
    axis = rank - 1 if isinstance(root.attrs, ir.MatMul) else 1
    roles = {operand.role: operand.value for operand in root.operands}
    scale, shift = (_per_channel(graph, step, algorithm, axis) for algorithm in ("mul", "add"))
    bias = graph.constant(roles["bias"]) if "bias" in roles else None
    if bias is None and "bias" in roles:  # it would have to be scaled, or added to, in every call
        return
    bias = None if bias is None else bias.reshape(-1).astype("float64")
    if shift is not None:
        bias = shift if bias is None else bias + shift
    elif scale is not None:
        weights = _scaled_weights(graph, root, roles["weights"], scale)
        if weights is None:
            return
        roles["weights"] = weights
        bias = None if bias is None else bias * scale
    else:
        return
    if bias is not None:
        if not affine.representable(bias):
            return
        shape = (*(1,) * (rank - 1), -1) if isinstance(root.attrs, ir.MatMul) else (-1,)
        roles["bias"] = graph.add_constant(bias.reshape(shape), f"{root.name}.bias")
    roles["dst"] = step.dst
    operands = tuple(ir.Operand(role, value) for role, value in roles.items())
    graph.merge(producer, at, replace(root, operands=operands))  # type: ignore[arg-type]


def _scaled_weights(graph: Graph, root: ir.Step, weights: int, scale: np.ndarray) -> int | None:
    array = graph.constant(weights)
    if array is None or isinstance(root.attrs, ir.MatMul):
        return None
    grouped = root.attrs.groups > 1  # type: ignore[union-attr]
    outer = array.shape[:2] if grouped else array.shape[:1]
    factor = scale.reshape(*outer, *(1,) * (array.ndim - len(outer)))
    product = array * factor
    return graph.add_constant(product, f"{root.name}.weights") if _fits(root, product) else None


def _fits(root: ir.Step, weights: np.ndarray) -> bool:
    """True if float32 holds what counts of the weights of each output."""
    if isinstance(root.attrs, ir.MatMul):
        return affine.representable(weights, axis=-1)
    outputs = weights.shape[0] * (weights.shape[1] if root.attrs.groups > 1 else 1)  # type: ignore[union-attr]
    return affine.representable(weights.reshape(outputs, -1), axis=0)


def _fold_scaled_source(graph: Graph, at: int) -> None:
    step = graph.steps[at]
    if not step or not isinstance(step.attrs, _WEIGHTED):
        return
    producer = graph.producer(step.operand("src"))
    line = graph.steps[producer].attrs if producer is not None else None  # type: ignore[union-attr]
    if not isinstance(line, ir.Eltwise) or line.algorithm != "linear" or line.beta != 0.0:
        return
    weights = graph.constant(step.operand("weights"))
    if weights is None:
        return
    product = weights.astype("float64") * line.alpha
    if not _fits(step, product):
        return
    scaled = graph.add_constant(product, f"{step.name}.weights")
    source = graph.steps[producer].operand("src")  # type: ignore[union-attr,index]
    roles = {operand.role: operand.value for operand in step.operands} | {"src": source, "weights": scaled}
    operands = tuple(ir.Operand(role, value) for role, value in roles.items())
    graph.merge(producer, at, replace(step, operands=operands))  # type: ignore[arg-type]


def _fold_into_layer_norm(graph: Graph, at: int) -> None:
    step = graph.steps[at]
    if not step or not isinstance(step.attrs, ir.Binary):
        return
    producer = graph.producer(step.operand("src"))
    root = graph.steps[producer] if producer is not None else None
    if not root or not isinstance(root.attrs, ir.LayerNormalization):
        return
    axis = len(graph.values[root.dst].shape) - 1
    roles = {operand.role: operand.value for operand in root.operands}
    scale, shift = (_per_channel(graph, step, algorithm, axis) for algorithm in ("mul", "add"))
    role, array = ("scale", scale) if scale is not None else ("shift", shift)
    if array is None or "shift" in roles or role in roles or not affine.representable(array):
        return
    roles[role] = graph.add_constant(array, f"{root.name}.{role}")
    roles["dst"] = step.dst
    order = ("src", "scale", "shift", "dst")
    operands = tuple(ir.Operand(name, roles[name]) for name in order if name in roles)
    graph.merge(producer, at, replace(root, operands=operands))  # type: ignore[arg-type]


def _merge_affine(graph: Graph, at: int) -> None:
    """Make the chain of scales and shifts that ends at ``at`` one scale and one shift.

    A binary multiplication with its post-ops runs at twice the speed of oneDNN 3.2's batch normalization,
    which is why batch norm that follows no convolution becomes that.
    """
    chain = _affine_chain(graph, at)
    if len(chain) < 3:
        return
    lines = [_line(graph, graph.steps[position]) for position in chain]
    form = affine.shorter(lines)  # type: ignore[arg-type]
    if form is None:
        return
    src = graph.steps[chain[0]].operand("src")  # type: ignore[union-attr]
    kept = chain[-len(form) :]
    shape = (1, -1, *(1,) * (len(graph.values[src].shape) - 2))
    for position in chain[: -len(form)]:
        graph.drop_into(position, graph.steps[kept[0]].name)  # type: ignore[union-attr]
    for position, line in zip(kept, form, strict=True):
        step = graph.steps[position]
        assert step
        algorithm, array = ("mul", line.scale) if line.multiplies or not line.adds else ("add", line.shift)
        constant = graph.add_constant(array.reshape(shape), f"{step.name}.{algorithm}")
        operands = (ir.Operand("src", src), ir.Operand("src1", constant), ir.Operand("dst", step.dst))
        graph.replace(position, ir.Step(step.name, ir.Binary(algorithm), operands))
        src = step.dst


def _line(graph: Graph, step: ir.Step | None) -> affine.Line | None:
    scale, shift = (_per_channel(graph, step, algorithm) for algorithm in ("mul", "add"))
    if scale is not None:
        return affine.scaled(scale)
    return None if shift is None else affine.shifted(shift)


def _affine_chain(graph: Graph, at: int) -> list[int]:
    """Positions of scales and shifts that follow one another and end at ``at``, oldest first."""
    chain: list[int] = []
    position: int | None = at
    while position is not None and _is_affine(graph, graph.steps[position]):
        chain.insert(0, position)
        position = graph.producer(graph.steps[position].operand("src"))  # type: ignore[union-attr]
    return chain


def _is_affine(graph: Graph, step: ir.Step | None) -> bool:
    if not step or not isinstance(step.attrs, ir.Binary | ir.Eltwise):
        return False
    if len(graph.values[step.dst].shape) < 3:
        return False
    return _line(graph, step) is not None
