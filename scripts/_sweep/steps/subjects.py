"""Turns a problem of a list into a step: attributes, operands with their shapes, the shape of the result.

One function for each kind; the table at the end names them.  A problem that makes no sense (an image that
pads and windows leave nothing of) is None.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tvm_mxplan.core.program import program as ir

from ..grammar import Problem
from . import host
from .element_types import typed
from .functions import EXACT_ELTWISE, eltwise
from .gates import squeeze_excite
from .products import few_bits_product, grouped_product, inner_product, matmul
from .sequences import attention, recurrent, recurrent_backward, recurrent_training, rms_normalization, rotary
from .subject import Data, Fields, Subject, Tensor, broadcast


def subject(problem: Problem) -> Subject | None:
    """The step of a problem; KeyError for an unknown kind."""
    fields = Fields(problem)
    made = _KINDS[problem.kind](fields)
    if made is None or not all(size > 0 for shape in _shapes(made) for size in shape):
        return None
    return typed(made, fields)


def _shapes(made: Subject) -> list[tuple[int, ...]]:
    return [made.dst, *(tensor.shape for tensor in made.tensors)]


def _convolution(f: Fields) -> Subject | None:
    groups, inputs, outputs = f.number("g"), f.number("ic"), f.number("oc")
    if inputs % groups or outputs % groups:
        return None
    src, kernel, strides, padding = f.spatial("i", 1), f.spatial("k", 1), f.spatial("s", 1), f.padding()
    dilation = tuple(gap + 1 for gap in f.spatial("d", 0))
    axes = len(src)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    dst = tuple((src[i] + padding[i] + padding[i + axes] - reach[i]) // strides[i] + 1 for i in range(axes))
    if any(src[i] + padding[i] + padding[i + axes] < reach[i] for i in range(axes)):
        return None
    algorithm = f.text("alg", "direct")
    attrs = ir.Convolution(strides, padding, dilation, groups, algorithm)  # type: ignore[arg-type]
    return Subject(
        attrs,
        _filtered(f, groups, inputs, outputs, src, kernel),
        (f.number("mb"), outputs, *dst),
        inputs // groups * prod(kernel),
        exact=algorithm == "direct",
        channels=1,
    )


def _deconvolution(f: Fields) -> Subject | None:
    groups, inputs, outputs = f.number("g"), f.number("ic"), f.number("oc")
    if inputs % groups or outputs % groups:
        return None
    src, kernel, strides, padding = f.spatial("i", 1), f.spatial("k", 1), f.spatial("s", 1), f.padding()
    dilation = tuple(gap + 1 for gap in f.spatial("d", 0))
    axes, extra = len(src), f.spatial("x", 0)  # x: output padding
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    dst = tuple(
        (src[i] - 1) * strides[i] + reach[i] + extra[i] - padding[i] - padding[i + axes] for i in range(axes)
    )
    if any(one >= stride for one, stride in zip(extra, strides, strict=True)):
        return None
    algorithm = f.text("alg", "direct")
    return Subject(
        ir.Deconvolution(strides, padding, dilation, groups, algorithm),  # type: ignore[arg-type]
        _filtered(f, groups, inputs, outputs, src, kernel),
        (f.number("mb"), outputs, *dst),
        max(1, inputs // groups * prod(kernel) // prod(strides)),
        exact=algorithm == "direct",
        channels=1,
    )


def _filtered(
    f: Fields, groups: int, inputs: int, outputs: int, src: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[Tensor, ...]:
    filters = (outputs // groups, inputs // groups, *kernel)
    tensors = [
        Tensor("src", (f.number("mb"), inputs, *src)),
        Tensor(
            "weights", filters if groups == 1 else (groups, *filters), bool(f.number("const", 1)), "weights"
        ),
    ]
    return (*tensors, *([Tensor("bias", (outputs,), True)] if f.number("bias", 0) else []))


def _pooling(f: Fields) -> Subject | None:
    src, kernel, strides = f.spatial("i", 1), f.spatial("k", 1), f.spatial("s", 1)
    padding, dilation = f.padding(), tuple(gap + 1 for gap in f.spatial("d", 0))
    axes, dst = len(src), []
    for i in range(axes):
        reach = (kernel[i] - 1) * dilation[i] + 1
        room = src[i] + padding[i] + padding[i + axes] - reach
        if room < 0 or padding[i] >= reach:
            return None
        count = room // strides[i] + 1
        if f.number("ceil", 0) and room % strides[i] and count * strides[i] < src[i] + padding[i]:
            count += 1
        # A window in the padding alone is refused.
        end = (count - 1) * strides[i] + reach - src[i] - padding[i]
        if end >= reach:
            return None
        dst.append(count)
    algorithm = f.text("alg", "max")
    attrs = ir.Pooling(algorithm, kernel, strides, padding[:axes], dilation)
    channels = f.number("ic")
    return Subject(
        attrs,
        (Tensor("src", (f.number("mb"), channels, *src)),),
        (f.number("mb"), channels, *dst),
        exact=algorithm == "max",
    )


def _batch_normalization(f: Fields) -> Subject:
    channels = f.number("ic")
    shape = (f.number("mb"), channels, *f.spatial("i", 1))
    vectors = [
        Tensor(role, (channels,), True, "positive" if role == "variance" else "numbers")
        for role in ("mean", "variance", "scale", "shift")
    ]
    attrs = ir.BatchNormalization(1e-5, bool(f.number("relu", 0)))
    return Subject(attrs, (Tensor("src", shape), *vectors), shape, exact=False)


def _layer_normalization(f: Fields) -> Subject:
    shape = f.dims()
    roles = [role for role in ("scale", "shift") if f.number(role, 1)]
    vectors = tuple(Tensor(role, shape[-1:], True) for role in roles)
    return Subject(ir.LayerNormalization(1e-5), (Tensor("src", shape), *vectors), shape, exact=False)


def _lrn(f: Fields) -> Subject:
    shape = (f.number("mb"), f.number("ic"), *f.spatial("i", 1))
    beta = {"beta075": 0.75, "beta1": 1.0}[f.text("form", "beta075")]
    attrs = ir.LRN(f.number("ls", 5), 1e-2, beta, 1.0)
    return Subject(attrs, (Tensor("src", shape),), shape, exact=False)


def _softmax(f: Fields) -> Subject | None:
    shape = f.dims()
    axis = f.number("axis", len(shape) - 1)
    if axis >= len(shape) or axis not in (1, len(shape) - 1):
        return None  # others are transposed first
    attrs = ir.Softmax(f.text("alg", "softmax"), axis)
    return Subject(attrs, (Tensor("src", shape),), shape, exact=False)


def _reduction(f: Fields) -> Subject:
    shape, algorithm = f.dims(), f.text("alg", "sum")
    axes = {int(axis) for axis in f.text("axes", "1").split(",")}
    dst = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    src = Tensor("src", shape, data="signs" if algorithm == "mul" else "numbers")
    return Subject(ir.Reduction(algorithm), (src,), dst, exact=algorithm != "mean")


def _eltwise(f: Fields) -> Subject:
    shape, algorithm = f.dims(), f.text("alg", "relu")
    if f.text("lib", "") == "host":
        return host.function(algorithm, shape)
    data: Data = "positive" if algorithm in ("log", "sqrt", "pow") else "numbers"
    src = Tensor("src", shape, data=data)
    return Subject(ir.Eltwise(*eltwise(algorithm)), (src,), shape, exact=algorithm in EXACT_ELTWISE)


def _binary(f: Fields) -> Subject:
    shape, algorithm = f.dims(), f.text("alg", "add")
    other = broadcast(shape, f.text("second", "whole"))
    second = Tensor("src1", other, bool(f.number("const", 0)), "signs" if algorithm == "div" else "numbers")
    return Subject(ir.Binary(algorithm), (Tensor("src", shape), second), shape)


def _prelu(f: Fields) -> Subject:
    shape = f.dims()
    weights = Tensor("weights", broadcast(shape, f.text("second", "channel")), bool(f.number("const", 1)))
    return Subject(ir.PReLU(), (Tensor("src", shape), weights), shape)


def _concat(f: Fields) -> Subject | None:
    shape, axis = f.dims(), f.number("axis", 1)
    sizes = [int(size) for size in f.text("pieces", "3,16,5").split(",")]
    if axis >= len(shape):
        return None
    pieces = tuple(Tensor("src", (*shape[:axis], size, *shape[axis + 1 :])) for size in sizes)
    return Subject(ir.Concat(axis), pieces, (*shape[:axis], sum(sizes), *shape[axis + 1 :]))


def _shuffle(f: Fields) -> Subject | None:
    shape, groups = f.dims(), f.number("g", 2)
    if shape[1] % groups:
        return None
    return Subject(ir.Shuffle(1, groups), (Tensor("src", shape),), shape)


def _resampling(f: Fields) -> Subject:
    src = f.spatial("i", 1)
    dst = tuple(f.number(f"o{axis}", f.number("o" + f.axes[0])) for axis in f.axes)
    algorithm = f.text("alg", "nearest")
    lead = (f.number("mb"), f.number("ic"))
    tensors = (Tensor("src", (*lead, *src)),)
    return Subject(ir.Resampling(algorithm), tensors, (*lead, *dst), exact=algorithm == "nearest")


def _pad(f: Fields) -> Subject:
    shape = f.dims()
    begin, end = (tuple(int(n) for n in f.text(name, "").split("x")) for name in ("begin", "end"))
    dst = tuple(b + size + e for b, size, e in zip(begin, shape, end, strict=True))
    return Subject(ir.Pad(begin, float(f.number("value", 0))), (Tensor("src", shape),), dst)


def _slice(f: Fields) -> Subject:
    shape = f.dims()
    begin, dst = (tuple(int(n) for n in f.text(name, "").split("x")) for name in ("begin", "size"))
    return Subject(ir.Slice(begin), (Tensor("src", shape),), dst)


def _quantization(f: Fields) -> Subject:
    shape = f.dims()
    return Subject(ir.Quantization(f.number("axis", 0)), (Tensor("src", shape),), shape, exact=False)


def _dynamic_quantization(f: Fields) -> Subject:
    """from: what numbers lie on one side of zero, or are all the same, if they do."""
    shape = f.dims()
    src = Tensor("src", shape, data=_SIDES[f.text("from", "both")])
    others = (("made_scale", (1,), "float32"), ("made_zero_point", (1,), "int32"))
    return Subject(ir.DynamicQuantization(), (src,), shape, exact=False, written="uint8", others=others)


_SIDES: dict[str, Data] = {"both": "fine", "above": "positive", "some": "signs"}


def _reorder(f: Fields) -> Subject | None:
    shape, source, target = f.dims(), f.text("from", ""), f.text("to", "")
    rank = sum(letter.isalpha() for letter in dict.fromkeys(source.lower()))
    if rank != len(shape) or rank != sum(letter.isalpha() for letter in dict.fromkeys(target.lower())):
        return None
    return Subject(ir.Reorder(), (Tensor("src", shape),), shape, layouts=(source, target))


def _convolution_backward_weights(f: Fields) -> Subject | None:
    forward = _convolution(f)
    if forward is None:
        return None
    (src, weights, *_), attrs = forward.tensors, forward.attrs
    assert isinstance(attrs, ir.Convolution)
    gradient = Tensor("gradient", forward.dst, data="weights")
    backward = ir.ConvolutionBackwardWeights(attrs.strides, attrs.padding, attrs.dilation, attrs.groups)
    terms = forward.dst[0] * prod(forward.dst[2:])
    return Subject(backward, (src, gradient), weights.shape, terms)


def _pooling_backward(f: Fields) -> Subject | None:
    forward = _pooling(f)
    if forward is None:
        return None
    attrs, (src,) = forward.attrs, forward.tensors
    assert isinstance(attrs, ir.Pooling)
    backward = ir.PoolingBackward(attrs.algorithm, attrs.kernel, attrs.strides, attrs.padding, attrs.dilation)
    return Subject(backward, (src, Tensor("gradient", forward.dst)), src.shape, exact=forward.exact)


def _batch_normalization_training(f: Fields) -> Subject:
    forward = _batch_normalization(f)
    tensors = tuple(one for one in forward.tensors if one.role in ("src", "scale", "shift"))
    vector = (forward.dst[1],)
    others = (("batch_mean", vector, "float32"), ("batch_variance", vector, "float32"))
    attrs = ir.BatchNormalizationTraining(1e-5)
    return Subject(attrs, tensors, forward.dst, exact=False, others=others)


def _batch_normalization_backward(f: Fields) -> Subject:
    forward = _batch_normalization(f)
    src, *vectors = forward.tensors
    kept = [one for one in vectors if one.role != "shift"]
    vector = (forward.dst[1],)
    return Subject(
        ir.BatchNormalizationBackward(1e-5),
        (src, Tensor("gradient", forward.dst), *kept),
        forward.dst,
        exact=False,
        others=(("scale_gradient", vector, "float32"), ("shift_gradient", vector, "float32")),
    )


def _layer_normalization_backward(f: Fields) -> Subject:
    forward = _layer_normalization(f)
    src = next(one for one in forward.tensors if one.role == "src")
    vector = (forward.dst[-1],)
    return Subject(
        ir.LayerNormalizationBackward(1e-5),
        (src, Tensor("gradient", forward.dst), Tensor("scale", vector)),
        forward.dst,
        exact=False,
        others=(("scale_gradient", vector, "float32"), ("shift_gradient", vector, "float32")),
    )


_KINDS: dict[str, Callable[[Fields], Subject | None]] = {
    "convolution": _convolution,
    "deconvolution": _deconvolution,
    "matmul": matmul,
    "inner_product": inner_product,
    "few_bits_product": few_bits_product,
    "grouped_product": grouped_product,
    "pooling": _pooling,
    "batch_normalization": _batch_normalization,
    "layer_normalization": _layer_normalization,
    "rms_normalization": rms_normalization,
    "squeeze_excite": squeeze_excite,
    "lrn": _lrn,
    "softmax": _softmax,
    "eltwise": _eltwise,
    "binary": _binary,
    "prelu": _prelu,
    "reduction": _reduction,
    "recurrent": recurrent,
    "attention": attention,
    "rotary": rotary,
    **host.KINDS,
    "concat": _concat,
    "shuffle": _shuffle,
    "resampling": _resampling,
    "pad": _pad,
    "slice": _slice,
    "reorder": _reorder,
    "quantization": _quantization,
    "dynamic_quantization": _dynamic_quantization,
    "convolution_backward_weights": _convolution_backward_weights,
    "pooling_backward": _pooling_backward,
    "batch_normalization_training": _batch_normalization_training,
    "batch_normalization_backward": _batch_normalization_backward,
    "layer_normalization_backward": _layer_normalization_backward,
    "recurrent_training": recurrent_training,
    "recurrent_backward": recurrent_backward,
}
