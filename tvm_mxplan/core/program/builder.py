"""``ProgramBuilder``: region programs written one value and one step at a time.

A builder starts from plain layouts; stages after it refine them.  Views (reshape, transpose) cost no step:
they are values that alias another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..layout.layout import permute_layout, plain_layout
from . import program as ir
from .dims import Dim, Expr, Shape
from .operands import reorder


class ProgramBuilder:
    """Collects values, steps and the arrays of constants; ``finish`` gives the program.

    Attributes
    ----------
    constants : arrays in the order of the constant values' ``index``; plain and C-contiguous.
    operator : the operator that steps from now on stem from, '' if it has no name.
    library : that runs steps from now on, '' for the one whose region it is.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: list[ir.Value] = []
        self.steps: list[ir.Step] = []
        self.symbols: list[ir.SymbolBinding] = []
        self.constants: list[np.ndarray] = []
        self._constant_ids: dict[tuple[int, tuple[int, ...], str], int] = {}
        self._counts = {"input": 0, "output": 0}
        self._names: dict[str, int] = {}
        self._written_outputs: set[int] = set()
        self.operator = ""
        self.library = ""

    def _add(self, value: ir.Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def port(self, kind: ir.ValueKind, name: str, shape: Shape, dtype: str) -> int:
        """The next input or output of the region."""
        index = self._counts[kind]
        self._counts[kind] += 1
        return self._add(ir.Value(name, shape, dtype, kind, plain_layout(len(shape)), index))

    def constant(self, array: np.ndarray, name: str = "") -> int:
        """A constant; the same bytes in memory, seen with the same shape, give the same value."""
        key = (array.__array_interface__["data"][0], array.shape, str(array.dtype))
        if key not in self._constant_ids:
            index = len(self.constants)
            self.constants.append(array)
            layout = plain_layout(array.ndim)
            value = ir.Value(
                name or f"constant{index}", array.shape, str(array.dtype), "constant", layout, index
            )
            self._constant_ids[key] = self._add(value)
        return self._constant_ids[key]

    def local(self, name: str, shape: Shape, dtype: str = "float32") -> int:
        return self._add(ir.Value(name, shape, dtype, "local", plain_layout(len(shape))))

    def unique(self, stem: str) -> str:
        """``stem0``, ``stem1``, ... : names of steps and of what they write."""
        count = self._names.get(stem, 0)
        self._names[stem] = count + 1
        return f"{stem}{count}"

    def reshape(self, value: int, shape: Shape) -> int:
        """``value`` seen with another shape; copied first where its layout is not plain."""
        source = self.values[value]
        if source.shape == shape:
            return value
        if source.layout != plain_layout(len(source.shape)):
            value = self.plain_copy(value)
            source = self.values[value]
        return self._add(
            ir.Value(source.name, shape, source.dtype, "local", plain_layout(len(shape)), alias_of=value)
        )

    def permute(self, value: int, axes: Sequence[int]) -> int:
        """``value`` with its axes reordered: the same bytes under a permuted layout."""
        source = self.values[value]
        shape = tuple(source.shape[axis] for axis in axes)
        layout = permute_layout(source.layout, axes)
        return self._add(ir.Value(source.name, shape, source.dtype, "local", layout, alias_of=value))

    def align(self, value: int, rank: int) -> int:
        """``value`` with axes of extent 1 put in front until it has ``rank`` axes."""
        shape = self.values[value].shape
        return self.reshape(value, (1,) * (rank - len(shape)) + shape)

    def plain_copy(self, value: int) -> int:
        source = self.values[value]
        return self.step("reorder", ir.Reorder(), source.shape, [("src", value)], source.dtype)

    def step(
        self,
        stem: str,
        attrs: ir.Attributes,
        shape: Shape,
        operands: Sequence[tuple[str, int]],
        dtype: str = "",
        post_ops: tuple[ir.PostOp, ...] = (),
    ) -> int:
        """Append a step that writes a new local of ``shape``; returns that value.

        It has the type of the step's first ``src`` where no other is given.
        """
        return self.step_of_several(stem, attrs, operands, {"dst": shape}, dtype, post_ops)[0]

    def step_of_several(
        self,
        stem: str,
        attrs: ir.Attributes,
        operands: Sequence[tuple[str, int]],
        results: Mapping[str, Shape],
        dtype: str | Mapping[str, str] = "",
        post_ops: tuple[ir.PostOp, ...] = (),
    ) -> list[int]:
        """Append a step that writes a new local for each of ``results``, shapes by role; gives the values.

        Parameters
        ----------
        dtype : of all results, or by role; that of the first ``src`` where it is empty.
        """
        if not dtype:
            dtype = next(self.values[value].dtype for role, value in operands if role == "src")
        name = self._step_name(stem, attrs)
        made = {
            role: self.local(
                name if role == "dst" else f"{name}.{role}",
                shape,
                dtype if isinstance(dtype, str) else dtype[role],
            )
            for role, shape in results.items()
        }
        roles = [ir.Operand(role, value) for role, value in (*operands, *made.items())]
        self.steps.append(ir.Step(name, attrs, tuple(roles), post_ops, library=self.library))
        return list(made.values())

    def _step_name(self, stem: str, attrs: ir.Attributes) -> str:
        """The operator's own name for the first step that computes something, names below it for others."""
        if not self.operator:
            return self.unique(stem)
        moves = isinstance(attrs, ir.Reorder) or (isinstance(attrs, ir.Quantization) and stem == "weights")
        if self.operator not in self._names and not moves:
            self._names[self.operator] = 1
            return self.operator
        return self.unique(f"{self.operator}.{stem}")

    def write_output(self, value: int, output: int) -> None:
        """Make ``output`` hold ``value``: without a copy where the bytes are the region's own."""
        root = value
        while self.values[root].alias_of >= 0:
            root = self.values[root].alias_of
        source, target = self.values[value], self.values[output]
        own = self.values[root].kind == "local" and source.layout == plain_layout(len(source.shape))
        taken = output in self._written_outputs
        if own and not taken and _count(self.values[root].shape) == _count(target.shape):
            self._written_outputs.add(output)
            self.values[root] = ir.Value(
                self.values[root].name,
                self.values[root].shape,
                self.values[root].dtype,
                "local",
                self.values[root].layout,
                alias_of=output,
            )
            return
        self.steps.append(reorder(self.unique("reorder"), value, output))

    def finish(self) -> ir.Program:
        return ir.Program(self.name, tuple(self.values), tuple(self.steps), tuple(self.symbols))


def _count(shape: Shape) -> Dim:
    """Number of elements, integers first, so that equal products compare equal."""
    number = 1
    symbolic: list[Dim] = []
    for dim in shape:
        if isinstance(dim, int):
            number *= dim
        else:
            symbolic.append(dim)
    result: Dim = number
    for dim in sorted(symbolic, key=str):
        result = Expr("*", result, dim)
    return result
