"""Turns a problem of a list into a step: attributes, operands with their shapes, the shape of the result.

One function for each kind; the table at the end names them.  A problem that makes no sense (an image that
pads and windows leave nothing of) is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from tvm_mxplan.core.program import program as ir

from .functions import EXACT_ELTWISE, eltwise
from .grammar import Number, Problem

Data = Literal["numbers", "weights", "positive", "signs"]
"""Small integers; those scaled to keep sums small; only positive ones; ones and minus ones."""


@dataclass(frozen=True)
class Tensor:
    """An operand; ``layout`` is '' for the plain one."""

    role: str
    shape: tuple[int, ...]
    constant: bool = False
    data: Data = "numbers"
    layout: str = ""


@dataclass(frozen=True)
class Subject:
    """A step without post-ops.

    Attributes
    ----------
    depth : number of products in a sum, for which weights are scaled.
    exact : its result is a sum or a choice of numbers, and has no rounding with ours.
    channels : axis of the result along which a part of it can be worked out alone; -1 for none.
    layouts : of src and dst, where the problem asks for a pair.
    """

    attrs: ir.Attributes
    tensors: tuple[Tensor, ...]
    dst: tuple[int, ...]
    depth: int = 1
    exact: bool = True
    channels: int = -1
    layouts: tuple[str, str] | None = None

    @property
    def work(self) -> int:
        """Multiplications, or elements where there are none."""
        return prod(self.dst) * self.depth + sum(prod(tensor.shape) for tensor in self.tensors)

    @property
    def elements(self) -> int:
        return prod(self.dst) + sum(prod(tensor.shape) for tensor in self.tensors)


class Fields:
    """The numbers of a problem by name, with what is missing by default."""

    def __init__(self, problem: Problem) -> None:
        self._fields: Mapping[str, Number] = dict(problem.fields)

    def number(self, name: str, default: int = 1) -> int:
        return int(self._fields.get(name, default))

    def text(self, name: str, default: str) -> str:
        return str(self._fields.get(name, default))

    @property
    def axes(self) -> str:
        """The letters of the spatial axes, outermost first."""
        if "id" in self._fields:
            return "dhw"
        return "hw" if "ih" in self._fields else "w"

    def spatial(self, letter: str, default: int) -> tuple[int, ...]:
        """One number for each axis: an axis that has none takes that of the axis before it."""
        numbers, last = [], default
        for axis in self.axes:
            last = self.number(letter + axis, last)
            numbers.append(last)
        return tuple(numbers)

    def padding(self) -> tuple[int, ...]:
        begin = self.spatial("p", 0)
        end = tuple(self.number(f"r{axis}", front) for axis, front in zip(self.axes, begin, strict=True))
        return (*begin, *end)

    def dims(self, default: str = "4x5") -> tuple[int, ...]:
        """``dims=2x3x4``."""
        return tuple(int(size) for size in self.text("dims", default).split("x"))


def subject(problem: Problem) -> Subject | None:
    """The step of a problem; KeyError for an unknown kind."""
    made = _KINDS[problem.kind](Fields(problem))
    if made is None or not all(size > 0 for shape in _shapes(made) for size in shape):
        return None
    return made


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
    return Subject(
        ir.Deconvolution(strides, padding, dilation, groups),
        _filtered(f, groups, inputs, outputs, src, kernel),
        (f.number("mb"), outputs, *dst),
        max(1, inputs // groups * prod(kernel) // prod(strides)),
        channels=1,
    )


def _filtered(
    f: Fields, groups: int, inputs: int, outputs: int, src: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[Tensor, ...]:
    filters = (outputs // groups, inputs // groups, *kernel)
    tensors = [
        Tensor("src", (f.number("mb"), inputs, *src)),
        Tensor("weights", filters if groups == 1 else (groups, *filters), True, "weights"),
    ]
    return (*tensors, *([Tensor("bias", (outputs,), True)] if f.number("bias", 0) else []))


def _matmul(f: Fields) -> Subject:
    """batch=2x3 of the result; bcast=src or weights broadcasts that one; ta, tb: transposed as stored."""
    rows, depth, columns = f.number("m"), f.number("k"), f.number("n")
    batch = tuple(int(size) for size in f.text("batch", "").split("x") if size)
    ones = (1,) * len(batch)
    lead = {"src": batch, "weights": batch, f.text("bcast", "none"): ones}
    rank = len(batch) + 2
    plain = "abcdef"[:rank]
    swapped = plain[:-2] + plain[-1] + plain[-2]
    tensors = [
        Tensor("src", (*lead["src"], rows, depth), layout=swapped if f.number("ta", 0) else plain),
        Tensor(
            "weights", (*lead["weights"], depth, columns), bool(f.number("const", 1)), "weights",
            swapped if f.number("tb", 0) else plain,
        ),
    ]  # fmt: skip
    if f.number("bias", 0):
        tensors.append(Tensor("bias", (*ones, 1, columns), True))
    return Subject(ir.MatMul(), tuple(tensors), (*batch, rows, columns), depth, channels=rank - 1)


def _inner_product(f: Fields) -> Subject:
    inputs, outputs, image = f.number("ic"), f.number("oc"), f.spatial("i", 0)
    image = () if 0 in image else image
    tensors = [
        Tensor("src", (f.number("mb"), inputs, *image)),
        Tensor("weights", (outputs, inputs, *image), bool(f.number("const", 1)), "weights"),
    ]
    if f.number("bias", 0):
        tensors.append(Tensor("bias", (outputs,), True))
    depth = inputs * prod(image)
    return Subject(ir.InnerProduct(), tuple(tensors), (f.number("mb"), outputs), depth, channels=1)


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


def broadcast(shape: tuple[int, ...], how: str) -> tuple[int, ...]:
    """``shape`` with ones where ``how``, a row of the table below, does not keep an axis."""
    rank = len(shape)
    kept = {
        "whole": set(range(rank)),
        "number": set(),
        "channel": {1},
        "last": {rank - 1},
        "gate": {0, 1},
        "row": {0, rank - 1},
        "tail": set(range(1, rank)),
    }[how]
    return tuple(size if axis in kept else 1 for axis, size in enumerate(shape))


def _recurrent(f: Fields) -> Subject:
    """cell and dir as the program has them; state1: it starts from given states."""
    cell, direction = f.text("cell", "lstm"), f.text("dir", "forward")
    gates, biases = {"lstm": (4, 4), "gru": (3, 3), "gru_linear": (3, 4)}.get(cell, (1, 1))
    directions = 2 if direction == "both" else 1
    samples, features, units = f.number("mb"), f.number("ic"), f.number("oc")
    state = (1, directions, samples, units)
    tensors = [
        Tensor("src", (f.number("t"), samples, features)),
        Tensor("weights", (1, directions, features, gates, units), True, "weights"),
        Tensor("recurrence", (1, directions, units, gates, units), True, "weights"),
        Tensor("bias", (1, directions, biases, units), True),
    ]
    if f.number("state", 0):
        tensors += [Tensor(role, state) for role in (("hidden", "cell") if cell == "lstm" else ("hidden",))]
    dst = (f.number("t"), samples, directions * units)
    attrs = ir.Recurrent(cell, direction)  # type: ignore[arg-type]
    return Subject(attrs, tuple(tensors), dst, features + units, exact=False)


def _attention(f: Fields) -> Subject | None:
    """mb samples, oc heads over g of keys, t queries on k keys of depth ic; mask: keys, whole or rows."""
    samples, heads, groups = f.number("mb"), f.number("oc"), f.number("g", 1)
    rows, keys, depth = f.number("t"), f.number("k"), f.number("ic")
    if heads % groups:
        return None
    tensors = [
        Tensor("src", (samples, heads, rows, depth)),
        Tensor("key", (samples, groups, keys, depth)),
        Tensor("value", (samples, groups, keys, depth)),
    ]
    masks = {"keys": (samples, 1, 1, keys), "whole": (1, heads, rows, keys), "rows": (1, 1, rows, 1)}
    mask = masks.get(f.text("mask", "no"))
    if mask is not None:
        tensors.append(Tensor("mask", mask))
    attrs = ir.Attention(depth**-0.5, f.text("causal", "no"))  # type: ignore[arg-type]
    return Subject(attrs, tuple(tensors), (samples, rows, heads, depth), depth + keys, exact=False)


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


def _reorder(f: Fields) -> Subject | None:
    shape, source, target = f.dims(), f.text("from", ""), f.text("to", "")
    rank = sum(letter.isalpha() for letter in dict.fromkeys(source.lower()))
    if rank != len(shape) or rank != sum(letter.isalpha() for letter in dict.fromkeys(target.lower())):
        return None
    return Subject(ir.Reorder(), (Tensor("src", shape),), shape, layouts=(source, target))


_KINDS: dict[str, Callable[[Fields], Subject | None]] = {
    "convolution": _convolution,
    "deconvolution": _deconvolution,
    "matmul": _matmul,
    "inner_product": _inner_product,
    "pooling": _pooling,
    "batch_normalization": _batch_normalization,
    "layer_normalization": _layer_normalization,
    "lrn": _lrn,
    "softmax": _softmax,
    "eltwise": _eltwise,
    "binary": _binary,
    "prelu": _prelu,
    "reduction": _reduction,
    "recurrent": _recurrent,
    "attention": _attention,
    "concat": _concat,
    "shuffle": _shuffle,
    "resampling": _resampling,
    "pad": _pad,
    "slice": _slice,
    "reorder": _reorder,
}
