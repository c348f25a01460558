"""Post-ops: elementwise steps that run inside the primitive that made their operand.

Before   v1 = convolution(x, w);  v2 = binary add(v1, r);  v3 = eltwise relu(v2)
After    v3 = convolution(x, w) post_ops=[binary add r, eltwise relu]

A step is fused into its latest producer, which moves to the step's place, so that everything it reads is
there.  Chains grow to any length and in any order.  A table says which broadcasts of a second operand keep
each kind of step off oneDNN's reference code; what the table does not name stays a step of its own.

An elementwise step takes no post-ops in oneDNN 3.2 but by reference code.  Where a chain starts with one, it
becomes a binary step with a number, which does.

Before   v1 = eltwise exp(x);  v2 = eltwise sqrt(v1)
After    v2 = binary mul(x, 1) post_ops=[eltwise exp, eltwise sqrt]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tvm_mxplan.byoc.backend import Translation
from tvm_mxplan.byoc.elementwise import COMMUTATIVE
from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.byoc.rewrites.quantized.fuse import read_integers, take_conversion, take_sum
from tvm_mxplan.byoc.rewrites.quantized.lower import lower
from tvm_mxplan.byoc.rewrites.quantized.scales import fold_scales
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Shape

from ..broadcasting import is_per_channel
from . import affine
from .before_concats import put_before_concats
from .before_views import put_before_views
from .cut_products import cut_products
from .depthwise import fuse_depthwise
from .flattened import read_images
from .folding import fold
from .integer_products import IntegerProducts
from .join_caches import join_caches
from .merged_rows import merge_rows
from .norms import normalize_channels_last
from .squeeze_excite import FUNCTIONS as _OWN_FUNCTIONS
from .squeeze_excite import squeeze_and_excite
from .transposes import copy_transposed
from .turned_rows import turn_rows

# oneDNN 3.2 takes at most 32 post-ops; long chains stop being one pass over registers well before.
MAX_POST_OPS = 16
_PRIVATE = default_rates().private_bytes


def fuse(
    program: ir.Program,
    constants: list[np.ndarray],
    integers: IntegerProducts = IntegerProducts.ALL,
    private: int = _PRIVATE,
) -> Translation:
    """Fold constants, fuse post-ops, copy what no step can read: a new program.

    Steps of other libraries stay what they are.

    Parameters
    ----------
    integers : the products of quantised models that compute with integers on the machine at hand.
    private : bytes of the caches that its cores have to themselves, all together.
    """
    graph = Graph(_with_others_hidden(program), constants)
    normalize_channels_last(graph)
    put_before_views(graph)
    put_before_concats(graph)
    fold(graph)
    if turn_rows(graph):
        put_before_views(graph)  # residuals that are read in the order of a turned product's rows
    lower(graph, lambda step: integers.takes(graph, step))
    _fuse_steps(graph, integers, private)
    if cut_products(graph):
        _fuse_steps(graph, integers, private)  # what follows a piece
    squeeze_and_excite(graph)
    read_integers(graph)
    fold_scales(graph)
    read_images(graph)
    join_caches(graph)
    copy_transposed(graph)
    merge_rows(graph)
    fused = graph.fused()
    finished, constants = graph.close()
    return Translation(_with_others_shown(finished), constants, fused)


@dataclass(frozen=True)
class _Others:
    """The attributes of a step of another library, which no rule in here is to look at."""

    attrs: ir.Attributes


def _with_others_hidden(program: ir.Program) -> ir.Program:
    steps = tuple(replace(s, attrs=_Others(s.attrs)) if s.library else s for s in program.steps)  # type: ignore[arg-type]
    return replace(program, steps=steps)


def _with_others_shown(program: ir.Program) -> ir.Program:
    steps = tuple(
        replace(step, attrs=step.attrs.attrs) if isinstance(step.attrs, _Others) else step
        for step in program.steps
    )
    return replace(program, steps=steps)


# --- what each kind of step takes --------------------------------------------------------------------------


def _vector(operand: Shape, dst: Shape) -> bool:
    return is_per_channel(operand, dst, 1)


def _vector_or_whole(operand: Shape, dst: Shape) -> bool:
    return operand == dst or _vector(operand, dst)


def _image_vector(operand: Shape, dst: Shape) -> bool:
    """A vector of an image of several pixels: of one pixel, oneDNN 3.2 takes the wrong elements."""
    several = any(isinstance(extent, int) and extent > 1 for extent in dst[2:])
    return _vector(operand, dst) and several


def _pixel_vector_or_whole(operand: Shape, dst: Shape) -> bool:
    """As ``_image_vector``; of a matrix, one sample, or a single number as well."""
    simple = len(dst) <= 2 or dst[0] == 1 or all(extent == 1 for extent in operand)
    return operand == dst or _image_vector(operand, dst) or (simple and _vector(operand, dst))


def _last_or_whole(operand: Shape, dst: Shape) -> bool:
    """A row, the whole, or one row for each sample: an attention mask."""
    if operand == dst or is_per_channel(operand, dst, len(dst) - 1):
        return True
    return len(dst) > 2 and dst[-1] != 1 and operand == (dst[0], *(1,) * (len(dst) - 2), dst[-1])


def _columns_or_whole(operand: Shape, dst: Shape) -> bool:
    return operand == dst or is_per_channel(operand, dst, len(dst) - 1)


_BINARY_POST_OPS: dict[type, Callable[[Shape, Shape], bool]] = {
    ir.Convolution: _vector_or_whole,
    ir.Deconvolution: _vector_or_whole,
    ir.MatMul: _last_or_whole,
    ir.InnerProduct: _vector_or_whole,
    ir.FewBitsProduct: _columns_or_whole,
    ir.GroupedProduct: _columns_or_whole,
    ir.Pooling: _vector,  # in plain layouts, oneDNN 3.2 adds the wrong elements of a whole tensor
    ir.Binary: _pixel_vector_or_whole,
    ir.Eltwise: _pixel_vector_or_whole,
    ir.Resampling: _image_vector,
    ir.Reduction: _vector_or_whole,
}
# Worth more than others that could take the same post-op: their result would travel to memory and back.
_OF_OUR_OWN = (ir.FewBitsProduct, ir.GroupedProduct)
_HEAVY = (ir.Convolution, ir.Deconvolution, ir.MatMul, ir.InnerProduct, *_OF_OUR_OWN)


def _takes_eltwise(graph: Graph, producer: int, integers: IntegerProducts, algorithm: str = "linear") -> bool:
    root = graph.steps[producer]
    if root and not integers.takes_eltwise(root, algorithm):
        return False
    if root and isinstance(root.attrs, _OF_OUR_OWN) and algorithm not in _OWN_FUNCTIONS:
        return False
    return bool(root) and _rule(root.attrs) is not None and len(root.post_ops) < MAX_POST_OPS  # type: ignore[union-attr]


def takes_binary(attrs: ir.Attributes, operand: Shape, dst: Shape) -> bool:
    """True if a step of this kind with a result of shape ``dst`` takes ``operand`` as a binary post-op."""
    rule = _rule(attrs)
    return rule is not None and rule(operand, dst)


def _rule(attrs: ir.Attributes) -> Callable[[Shape, Shape], bool] | None:
    """The rule for operands of binary post-ops; None for steps without any post-ops."""
    if isinstance(attrs, ir.Softmax) and attrs.algorithm == "log_softmax":
        return None  # our own kernel has none
    return _BINARY_POST_OPS.get(type(attrs))


# --- rewriting ----------------------------------------------------------------------------------------------


def _fuse_steps(graph: Graph, integers: IntegerProducts, private: int) -> None:
    for at in range(len(graph.steps)):
        _fuse_step(graph, at, integers, private)


def _fuse_step(graph: Graph, at: int, integers: IntegerProducts, private: int) -> None:
    step = graph.steps[at]
    if not step or step.post_ops:
        return
    pair = fuse_depthwise(graph, at, private)
    if isinstance(step.attrs, ir.Quantization):
        take_conversion(graph, at)
    elif pair is not None:
        into, merged = pair
        graph.merge(into, at, merged)
    elif isinstance(step.attrs, ir.Eltwise):
        producer = graph.producer(step.operand("src"))
        if producer is not None and _takes_eltwise(graph, producer, integers, step.attrs.algorithm):
            _append(graph, producer, at, ir.EltwisePostOp(*_fields(step.attrs)))
    elif isinstance(step.attrs, ir.Binary) and not take_sum(graph, at):
        candidates = _producers(graph, step, step.attrs, integers)
        if candidates:
            _, producer, operand = max(candidates)
            _append(graph, producer, at, ir.BinaryPostOp(step.attrs.algorithm, operand))


def _producers(
    graph: Graph, step: ir.Step, binary: ir.Binary, integers: IntegerProducts
) -> list[tuple[bool, int, int]]:
    """Steps that could take ``step`` as a post-op: whether heavy, position, the other operand."""
    shape = graph.values[step.dst].shape
    found = []
    for role, other in (("src", "src1"), ("src1", "src")):
        if role == "src1" and binary.algorithm not in COMMUTATIVE:
            continue
        value, operand = step.operand(role), step.operand(other)
        producer = graph.producer(value)
        if producer is None or graph.values[value].shape != shape:
            continue
        root = graph.steps[producer]
        # A pair's result oneDNN 3.2 combines with no other tensor.
        if root is None or root.has_depthwise or not _takes_eltwise(graph, producer, integers):
            continue
        other_shape = graph.values[operand].shape
        if takes_binary(root.attrs, other_shape, shape) and integers.takes_binary(
            root, binary.algorithm, other_shape, shape
        ):
            found.append((isinstance(root.attrs, _HEAVY), producer, operand))
    return found


def _append(graph: Graph, producer: int, at: int, post_op: ir.PostOp) -> None:
    root, step = graph.steps[producer], graph.steps[at]
    assert root and step
    if isinstance(root.attrs, ir.Eltwise):
        root = _as_binary(graph, root, root.attrs)
    operands = tuple(
        ir.Operand("dst", step.dst) if operand.role == "dst" else operand for operand in root.operands
    )
    merged = replace(root, operands=operands, post_ops=_joined(root, post_op))
    graph.merge(producer, at, merged)


def _as_binary(graph: Graph, step: ir.Step, attrs: ir.Eltwise) -> ir.Step:
    """The same function as a binary step with a number, which takes post-ops."""
    algorithm, number = "mul", 1.0
    post_ops: tuple[ir.PostOp, ...] = (ir.EltwisePostOp(*_fields(attrs)),)
    if attrs.algorithm == "linear" and attrs.beta == 0.0:
        number, post_ops = attrs.alpha, ()
    elif attrs.algorithm == "linear" and attrs.alpha == 1.0:
        algorithm, number, post_ops = "add", attrs.beta, ()
    rank = len(graph.values[step.dst].shape)
    constant = graph.add_constant(np.full((1,) * rank, number), f"{step.name}.number")
    operands = (
        ir.Operand("src", step.operand("src")), ir.Operand("src1", constant), ir.Operand("dst", step.dst),
    )  # fmt: skip
    return ir.Step(step.name, ir.Binary(algorithm), operands, post_ops)


def _joined(root: ir.Step, last: ir.PostOp) -> tuple[ir.PostOp, ...]:
    """The post-ops of ``root`` and one more; two lines in a row are one where that keeps the digits."""
    post_ops = root.post_ops
    lines = [_line(post_op) for post_op in (*post_ops[-1:], last)]
    if len(lines) < 2 or None in lines:
        return (*post_ops, last)
    whole = affine.product(lines)  # type: ignore[arg-type]
    rounded = len(post_ops) == 1 and isinstance(root.attrs, _HEAVY)
    if not affine.keeps_digits([whole], lines, rounded=rounded):  # type: ignore[arg-type]
        return (*post_ops, last)
    return (*post_ops[:-1], ir.EltwisePostOp("linear", float(whole.scale[0]), float(whole.shift[0])))


def _line(post_op: ir.PostOp) -> affine.Line | None:
    if not (isinstance(post_op, ir.EltwisePostOp) and post_op.algorithm == "linear"):
        return None
    return affine.Line(np.array([post_op.alpha]), np.array([post_op.beta]))


def _fields(attrs: ir.Eltwise) -> tuple[str, float, float]:
    return attrs.algorithm, attrs.alpha, attrs.beta
