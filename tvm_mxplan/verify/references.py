"""Checks a kernel's results for the operands of ``data``.

Products of ``products`` and steps that move or select numbers are held to the bit, with everything behind
them that does not round either (bias, residual, relu, clip).  What rounds is held to the error that opcheck
derives for it, Winograd's sums to their own statement.  Nothing of it calls the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck.compare import differ
from tvm_mxplan.opcheck.estimate import Estimate, as_stored, rounded_to
from tvm_mxplan.opcheck.references import POST_OPS, evaluate, quantized
from tvm_mxplan.opcheck.references.matmul import few_bits_matrix, groups_of
from tvm_mxplan.opcheck.references.operands import Operands
from tvm_mxplan.opcheck.references.windows.convolution import before_depthwise, depthwise
from tvm_mxplan.opcheck.result import Finding

from . import attention, channels, products, recurrent
from .drawing import Array
from .exact import exact_post_op, exactly
from .sample import positions, slices

GATHERED = 1 << 22
"""Numbers gathered for one product of matrices; where all positions take more, a sample is worked out."""
MULTIPLIED = 1 << 30
"""Likewise, multiply-adds of one product."""
WORKED_OUT = 1 << 18
"""Numbers that a reference in float64 is given; where a tensor has more, a sample of one axis is."""
_LEAST = 16
_FILTERS = 8
"""Groups, inputs and outputs of a gradient of weights that are worked out at least, both ends among them."""
_WINOGRAD_ROOM = 16.0
"""Of a stated error in the L2 norm, what the worst of a million elements may be off by."""

Chosen = Callable[[Array], Array]
"""Takes, of an array that broadcasts to the result's shape, what is worked out, in the reference's shape."""


@dataclass(frozen=True)
class Run:
    """One run of a kernel.

    Attributes
    ----------
    arrays : what was read, by value, logical; ``prior`` is what dst held, None unless a sum adds to it.
    result : what was written into dst, logical; ``others`` is what else was, by role.
    stated_error : what the implementation adds to rounding by its own statement, in the L2 norm.
    """

    program: ir.Program
    arrays: dict[int, Array]
    prior: Array | None
    result: Array
    stated_error: float
    others: Mapping[str, Array] = field(default_factory=dict)


def judge(run: Run) -> Finding | None:
    """The worst of the elements that were worked out, if any is wrong; its index is that in the result."""
    as_read, run = run, _widened(run)
    step = run.program.steps[0]
    match step.attrs:
        case ir.Recurrent() | ir.RecurrentTraining() | ir.RecurrentBackward():
            given = {o.role: as_read.arrays[o.value] for o in step.operands if not o.is_result}
            return recurrent.judge(step, given, {"dst": run.result, **run.others})
        case ir.DynamicQuantization() | ir.LayerNormalizationBackward() | ir.Ranking():
            return _of_all(step, run)
        case ir.BatchNormalizationTraining() | ir.BatchNormalizationBackward():
            given = {o.role: run.arrays[o.value] for o in step.operands if not o.is_result}
            return channels.judge(step, given, {"dst": run.result, **run.others})
        case ir.Convolution() | ir.Deconvolution() | ir.MatMul() | ir.InnerProduct():
            estimate, chosen = _product(run)
        case ir.ConvolutionBackwardWeights():
            estimate, chosen = _filters(run)
        case ir.FewBitsProduct() as attrs:
            estimate, chosen = _few_bits(run, attrs)
        case ir.GroupedProduct():
            estimate, chosen = _grouped(run)
        case ir.Attention() as attrs:
            arrays = {o.role: run.arrays[o.value] for o in step.operands if not o.is_result}
            estimate, chosen = attention.worked_out(attrs, arrays, run.result.shape, run.result.dtype)
            finding = attention.misplaced(arrays, run.others)
            if finding is not None:
                return finding
        case _:
            estimate, chosen = _other(run)
    got = chosen(run.result)
    exact = not np.any(estimate.error)
    if exact and np.array_equal(got, as_stored(estimate.value, got.dtype)):  # rounded once, if it is shorter
        return None
    expected = np.asarray(estimate.value, np.float64)
    finding, _ = differ("dst", got, Estimate(expected, estimate.error))
    if finding is None:
        return None
    at = finding.index
    if exact and finding.kind == "values":  # all are beyond what is allowed; the largest says most
        gap = np.abs(got.astype(np.float64) - expected)
        at = tuple(map(int, np.unravel_index(int(gap.argmax()), got.shape)))
        finding = replace(finding, actual=float(got[at]), expected=float(expected[at]))
    numbers = np.arange(run.result.size).reshape(run.result.shape)
    index = np.unravel_index(int(chosen(numbers)[at]), run.result.shape)
    return replace(finding, index=tuple(map(int, index)))


def _of_all(step: ir.Step, run: Run) -> Finding | None:
    """The first result that differs of a step whose results all follow from the whole of its source."""
    given = {o.role: [run.arrays[o.value]] for o in step.operands if not o.is_result}
    results = {"dst": run.result, **run.others}
    for role, estimate in evaluate(step, run.result.shape, given, ()).items():
        finding, _ = differ(role, results[role], estimate)
        if finding is not None:
            return finding
    return None


def _widened(run: Run) -> Run:
    """The run with shorter types in float32, which holds their numbers, but for integers of a word."""
    arrays = {
        value: array if array.dtype in (np.int32, np.int64) else array.astype(np.float32, copy=False)
        for value, array in run.arrays.items()
    }
    prior = None if run.prior is None else run.prior.astype(np.float32, copy=False)
    return replace(run, arrays=arrays, prior=prior)


# --- products --------------------------------------------------------------------------------------------


def _product(run: Run) -> tuple[Estimate, Chosen]:
    step, shape = run.program.steps[0], run.result.shape
    read = {operand.role: [run.arrays[operand.value]] for operand in step.operands if not operand.is_result}
    given = {role: arrays[0] for role, arrays in quantized.real(step, read).items()}
    filters = math.prod(given["weights"].shape)
    match step.attrs:
        case ir.MatMul():
            rows, columns = shape[-2:]
            batch = math.prod(shape[:-2])
            most = _most(batch * given["src"].shape[-1], batch * given["src"].shape[-1] * columns)
            at = positions([rows], most)
            value, chosen = products.matmul(given, at), _rows(shape, at)
        case ir.InnerProduct():
            at = positions([shape[0]], _most(filters // shape[1], filters))
            value, chosen = products.inner_product(given, at), _samples(shape, at)
        case ir.Convolution() | ir.Deconvolution() as attrs:
            if step.has_depthwise:
                return _with_depthwise(run, given)
            taken = filters // shape[1] * attrs.groups
            at = positions([shape[0], *shape[2:]], _most(taken, filters))
            value = products.convolution(attrs, given, shape[2:], at)
            chosen = _pixels(shape, at)
    estimate = _stated(_with_bias(value, given, step, chosen), run)
    estimate = _behind(estimate, step.post_ops, run, chosen)
    return quantized.stored(step, read, estimate, run.result.dtype), chosen


def _few_bits(run: Run, attrs: ir.FewBitsProduct) -> tuple[Estimate, Chosen]:
    """Some rows and some columns, in float32: sums are exact."""
    step, shape = run.program.steps[0], run.result.shape
    given = {operand.role: run.arrays[operand.value] for operand in step.operands if not operand.is_result}
    src = given.pop("src").reshape(-1, run.arrays[step.operand("src")].shape[-1])
    depth, of_columns = src.shape[1], (-1, shape[-1])
    columns = slices(shape[-1], max(_LEAST, GATHERED // depth))
    rows = slices(len(src), max(_LEAST, MULTIPLIED // (depth * len(columns))))
    matrix = few_bits_matrix(attrs, {role: [array[:, columns]] for role, array in given.items()}, depth)

    def chosen(array: Array) -> Array:
        every: Array = np.broadcast_to(array, shape).reshape(of_columns)
        return np.asarray(every[np.ix_(rows, columns)])

    value = src[rows] @ matrix.astype(np.float32).T
    return _behind(Estimate(value), step.post_ops, run, chosen), chosen


def _grouped(run: Run) -> tuple[Estimate, Chosen]:
    """Some rows of all groups, in float32: sums are exact."""
    step = run.program.steps[0]
    src, matrices, ends = (run.arrays[step.operand(role)] for role in ("src", "weights", "ends"))
    rows = positions([len(src)], max(_LEAST, MULTIPLIED // math.prod(matrices.shape[1:])))
    groups = groups_of(ends, rows)
    value = np.zeros((len(rows), matrices.shape[-1]), np.float32)
    for group, matrix in enumerate(matrices):
        value[groups == group] = src[rows[groups == group]] @ matrix
    chosen = _rows(run.result.shape, rows)
    return _behind(Estimate(value), step.post_ops, run, chosen), chosen


def _filters(run: Run) -> tuple[Estimate, Chosen]:
    """A gradient of weights: of some groups, and of some inputs and outputs of each."""
    step = run.program.steps[0]
    attrs = step.attrs
    assert isinstance(attrs, ir.ConvolutionBackwardWeights)
    given = {operand.role: run.arrays[operand.value] for operand in step.operands if not operand.is_result}
    shape = run.result.shape if attrs.groups > 1 else (1, *run.result.shape)
    gradient = given["gradient"].shape
    sums = max(1, MULTIPLIED // (gradient[0] * math.prod(gradient[2:]) * math.prod(shape[3:])))
    most = max(_FILTERS, round(sums ** (1 / 3 if attrs.groups > 1 else 1 / 2)))
    at = [slices(extent, most) for extent in shape[:3]]

    def chosen(array: Array) -> Array:
        return np.broadcast_to(array, run.result.shape).reshape(shape)[np.ix_(*at)]

    return Estimate(products.backward_weights(attrs, given, shape[3:], at)), chosen


def _with_depthwise(run: Run, given: dict[str, Array]) -> tuple[Estimate, Chosen]:
    """A pointwise convolution with a depthwise one behind it, which needs all of the first's result."""
    step, shape = run.program.steps[0], run.result.shape
    attrs = step.attrs
    assert isinstance(attrs, ir.Convolution)
    inner = before_depthwise(attrs, Operands({role: [array] for role, array in given.items()}, shape))
    everywhere = np.arange(inner[0] * math.prod(inner[2:]))
    rows = products.convolution(attrs, given, inner[2:], everywhere)
    pixels = _pixels(inner, everywhere)
    place = next(at for at, post_op in enumerate(step.post_ops) if isinstance(post_op, ir.DepthwisePostOp))
    post_op = step.post_ops[place]
    assert isinstance(post_op, ir.DepthwisePostOp)
    first = _behind(Estimate(_with_bias(rows, given, step, pixels)), step.post_ops[:place], run, pixels)
    # The value between the two is of the result's type.
    between = first.value.astype(run.result.dtype, copy=False).astype(np.float32, copy=False)
    image = Estimate(_image(between, inner))
    at = positions([shape[0], *shape[2:]], _most(math.prod(given["depthwise_weights"].shape), 1))
    chosen = _pixels(shape, at)
    if np.any(first.error):
        error = np.broadcast_to(first.error, first.value.shape)
        image = rounded_to(run.result.dtype, Estimate(_image(first.value, inner), _image(error, inner)))
        whole = depthwise(post_op, image, Operands({r: [a] for r, a in given.items()}, shape))
        estimate = Estimate(chosen(whole.value), chosen(np.broadcast_to(whole.error, shape)))
    else:
        axes, channels = len(shape) - 2, shape[1]
        second = ir.Convolution(
            (post_op.stride,) * axes, (post_op.padding,) * (2 * axes), (1,) * axes, channels
        )
        read = {"src": image.value, "weights": given["depthwise_weights"]}
        value = products.convolution(second, read, shape[2:], at)
        bias = given.get("depthwise_bias")
        estimate = Estimate(value if bias is None else value + bias.reshape(-1))
    return _behind(estimate, step.post_ops[place + 1 :], run, chosen), chosen


def _most(gathered: int, multiplied: int) -> int:
    """Positions to work out, from what one of them takes."""
    return max(_LEAST, min(GATHERED // max(1, gathered), MULTIPLIED // max(1, multiplied)))


def _with_bias(value: Array, given: dict[str, Array], step: ir.Step, chosen: Chosen) -> Array:
    bias = given.get("bias")
    if bias is None:
        return value
    return value + (chosen(bias) if isinstance(step.attrs, ir.MatMul) else bias.reshape(-1))


def _stated(value: Array, run: Run) -> Estimate:
    if not run.stated_error:
        return Estimate(value)
    size = float(np.sqrt(np.mean(np.square(value, dtype=np.float64))))
    return Estimate(value, np.full(value.shape, _WINOGRAD_ROOM * run.stated_error * size))


def _image(rows: Array, shape: Sequence[int]) -> Array:
    """[positions, channels] of all positions as [batch, channels, ...]."""
    return np.moveaxis(rows.reshape(shape[0], *shape[2:], shape[1]), -1, 1)


def _pixels(shape: Sequence[int], at: Array) -> Chosen:
    def chosen(array: Array) -> Array:
        last = np.moveaxis(np.broadcast_to(array, shape), 1, -1)
        if len(at) == math.prod(shape) // shape[1]:
            return last.reshape(-1, shape[1])
        return last[np.unravel_index(at, last.shape[:-1])]

    return chosen


def _samples(shape: Sequence[int], at: Array) -> Chosen:
    return lambda array: np.broadcast_to(array, shape)[at]


def _rows(shape: Sequence[int], at: Array) -> Chosen:
    return lambda array: np.broadcast_to(array, shape)[..., at, :]


# --- all other steps -------------------------------------------------------------------------------------


def _other(run: Run) -> tuple[Estimate, Chosen]:
    step, shape = run.program.steps[0], run.result.shape
    given: dict[str, list[Array]] = {}
    for operand in step.operands:
        if not operand.is_result:
            given.setdefault(operand.role, []).append(run.arrays[operand.value])

    def everything(array: Array) -> Array:
        return np.broadcast_to(array, shape)

    value = exactly(step, given, shape)
    if value is not None:
        return _behind(Estimate(value), step.post_ops, run, everything), everything
    cuts = _cuts(step, shape, {role: arrays[0].shape for role, arrays in given.items()}["src"])

    def cut(array: Array) -> Array:
        for axis, index in cuts.items():
            # Vectors and what is broadcast along the axis stay whole.
            if array.ndim == len(shape) and array.shape[axis] != 1:
                array = array.take(index, axis)
        return array

    def chosen(array: Array) -> Array:
        return cut(everything(array))

    smaller = {role: [cut(array) for array in arrays] for role, arrays in given.items()}
    extents = tuple(len(cuts[axis]) if axis in cuts else extent for axis, extent in enumerate(shape))
    alone = ir.Step(step.name, step.attrs, step.operands)
    estimate = evaluate(alone, extents, smaller, (), run.result.dtype)["dst"]
    return _behind(estimate, step.post_ops, run, chosen), chosen


def _cuts(step: ir.Step, shape: Sequence[int], src: Sequence[int]) -> dict[int, Array]:
    """Along which axes only some of the result is worked out, and which indices."""
    cuts: dict[int, Array] = {}
    size = max(math.prod(shape), math.prod(src))
    for axis in sorted(_free_axes(step, shape, src), key=lambda axis: -shape[axis]):
        if size <= WORKED_OUT:
            break
        index = slices(shape[axis], max(_LEAST, WORKED_OUT * shape[axis] // size))
        size = size // shape[axis] * len(index)
        cuts[axis] = index
    return cuts


def _free_axes(step: ir.Step, shape: Sequence[int], src: Sequence[int]) -> list[int]:
    """Axes along which a step does the same with every index."""
    axes = range(len(shape))
    match step.attrs:
        case ir.Eltwise() | ir.Binary() | ir.PReLU() | ir.Cast():
            return list(axes)
        case ir.BatchNormalization() | ir.LRN():
            return [axis for axis in axes if axis != 1]
        case ir.SqueezeExcite() | ir.GridSample():
            return [0]
        case ir.Scatter() | ir.ScatterElements():
            return []
        case ir.LayerNormalization() | ir.RmsNormalization() | ir.Rotary():
            return list(axes)[:-1]
        case ir.Quantization(axis=along):
            return [axis for axis in axes if axis != along]
        case ir.CumulativeSum(axis=along):
            return [axis for axis in axes if axis != along]
        case ir.Softmax(axis=along):
            return [axis for axis in axes if axis != along % len(shape)]
        case ir.Reduction():
            return [axis for axis in axes if shape[axis] == src[axis]]
    return [0, 1]  # windows and interpolation


# --- post-ops --------------------------------------------------------------------------------------------


def _behind(estimate: Estimate, post_ops: Sequence[ir.PostOp], run: Run, chosen: Chosen) -> Estimate:
    """An estimate behind post-ops; exact as long as nothing rounds."""
    for post_op in post_ops:
        other = None
        if isinstance(post_op, ir.BinaryPostOp):
            other = chosen(run.arrays[post_op.value])
        elif isinstance(post_op, ir.SumPostOp):
            assert run.prior is not None
            other = chosen(run.prior)
        exact = None if np.any(estimate.error) else exact_post_op(post_op, estimate.value, other)
        if exact is not None:
            estimate = Estimate(exact)
            continue
        wide = Estimate(np.asarray(estimate.value, np.float64), estimate.error)
        with np.errstate(all="ignore"):
            estimate = POST_OPS[type(post_op)](post_op, wide, other, Operands({}, ()))
    return estimate
