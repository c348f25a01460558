"""Real tensors that stand in a region as integers with a scale."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape

from ..graph import Graph


@dataclass(frozen=True)
class Numbers:
    """The scales and zero points of integers, and the values of a program that hold them.

    Attributes
    ----------
    zero_value : -1 where there is no zero point, which is 0 then.
    axis : along which vectors of them stand.
    is_known : False for one scale and one zero point that the region computes or is given.
    """

    scale: tuple[float, ...]
    zero: tuple[int, ...]
    scale_value: int
    zero_value: int = -1
    axis: int = 0
    is_known: bool = True

    @property
    def is_single(self) -> bool:
        """True for one scale and one zero point for the whole tensor."""
        return not self.is_known or len(self.scale) == len(self.zero) == 1

    def same_as(self, other: Numbers) -> bool:
        """Whether equal integers stand for equal real numbers."""
        if not (self.is_known and other.is_known):
            return (self.scale_value, self.zero_value) == (other.scale_value, other.zero_value)
        along = self.axis if not self.is_single else other.axis
        return (self.scale, self.zero, along) == (other.scale, other.zero, other.axis)

    def operands(self, side: str) -> list[ir.Operand]:
        """Operands of a step whose side (src, dst) is of such integers."""
        found = [ir.Operand(f"{side}_scale", self.scale_value)]
        if self.zero_value >= 0:
            found.append(ir.Operand(f"{side}_zero_point", self.zero_value))
        return found


def numbers_of(graph: Graph, step: ir.Step, side: str) -> Numbers:
    """The numbers of one side of a conversion or a product."""
    roles = {operand.role: operand.value for operand in step.operands}
    axis = step.attrs.axis if isinstance(step.attrs, ir.Quantization) else 0
    scale = graph.constant(roles[f"{side}_scale"])
    zero_value = roles.get(f"{side}_zero_point", -1)
    zero = graph.constant(zero_value) if zero_value >= 0 else np.zeros(1, "int32")
    if scale is None or zero is None:
        return Numbers((), (), roles[f"{side}_scale"], zero_value, axis, is_known=False)
    return Numbers(tuple(map(float, scale)), tuple(map(int, zero)), roles[f"{side}_scale"], zero_value, axis)


@dataclass(frozen=True)
class Form:
    """A real tensor as integers: the value that holds them, and their numbers."""

    value: int
    numbers: Numbers


def view_of(graph: Graph, form: Form, real: int, view: int) -> Form | None:
    """The form of ``view``, a view of the real tensor ``real`` in the form ``form``; None if it has none."""
    base, seen, held = graph.values[real], graph.values[view], graph.values[form.value]
    same = base.layout == held.layout and base.shape == held.shape
    if not form.numbers.is_single or seen.alias_offset != 0 or not same:
        return None
    integers = seen.inside(dtype=held.dtype, alias_of=form.value, offset=-1, nbytes=-1)
    return Form(graph.add(integers), form.numbers)


@dataclass(frozen=True)
class Weights:
    """Weights of a product as signed integers around 0: the value that holds them, and its scales."""

    value: int
    scale: np.ndarray


def weights_form(
    graph: Graph, form: Form, real: int, weights: int, outputs: tuple[int, ...]
) -> Weights | None:
    """The weights of a product of integers; None where libraries have none for them.

    Parameters
    ----------
    form : of the constant ``real``, of which ``weights`` is a view or which it is.
    outputs : axes of ``weights`` along which scales may differ.
    """
    integers = graph.constant(form.value)
    held, numbers = graph.values[form.value], form.numbers
    if integers is None or held.kind != "constant":
        return None
    value = form.value
    if held.dtype != "int8" or any(numbers.zero):
        centred = integers.astype("int16") - _spread(np.array(numbers.zero, "int16"), numbers, integers.shape)
        if centred.min(initial=0) < -128 or centred.max(initial=0) > 127:
            return None
        value = graph.add_constant(centred, f"{held.name}.centred", "int8")
    scale = np.array(numbers.scale, "float32")
    if scale.size > 1:
        found = _along(graph, numbers, real, weights, outputs)
        if found is None:
            return None
        scale = found
    if weights != real:
        seen = replace(graph.values[weights], dtype="int8", alias_of=value)
        value = graph.add(seen)
    return Weights(value, scale)


def _along(
    graph: Graph, numbers: Numbers, real: int, weights: int, outputs: tuple[int, ...]
) -> np.ndarray | None:
    """One scale for each output of a product; None where scales differ along other axes."""
    shape = static_shape(graph.values[real].shape)
    spread = np.broadcast_to(_spread(np.array(numbers.scale, "float32"), numbers, shape), shape)
    seen = spread if weights == real else _seen(spread, graph.values[weights])
    first = tuple(slice(None) if axis in outputs else slice(0, 1) for axis in range(seen.ndim))
    scale = seen[first]
    return (
        scale.reshape(-1).astype("float32")
        if np.array_equal(np.broadcast_to(scale, seen.shape), seen)
        else None
    )


def _spread(row: np.ndarray, numbers: Numbers, shape: tuple[int, ...]) -> np.ndarray:
    """A vector along the numbers' axis, so that it broadcasts to ``shape``."""
    return row.reshape([-1 if axis == numbers.axis else 1 for axis in range(len(shape))])


def _seen(array: np.ndarray, view: ir.Value) -> np.ndarray:
    """A plain array as a view of it shows it."""
    order, shape = parse_layout(view.layout).order, static_shape(view.shape)
    return array.reshape([shape[axis] for axis in order]).transpose(np.argsort(order))


def real_numbers(graph: Graph, form: Form) -> np.ndarray | None:
    """The real numbers of a constant of integers, rounded once; None for what is no constant."""
    integers = graph.constant(form.value)
    if integers is None:
        return None
    scale, zero = (
        _spread(np.array(row, dtype), form.numbers, integers.shape)
        for row, dtype in ((form.numbers.scale, "float32"), (form.numbers.zero, "int32"))
    )
    return ((integers.astype("int32") - zero).astype("float32") * scale).astype("float32")
