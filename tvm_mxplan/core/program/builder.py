"""``ProgramBuilder``: region programs written one value and one step at a time.

A builder starts from plain layouts; stages after it refine them.  Views (reshape, transpose) cost no step:
they are values that alias the one whose bytes they are.  A reshape that joins dimensions which stand apart
copies.  Where views behind it take them apart again, as heads of attention are, these see what was copied:

Before   c = copy of x [50,2,768] seen as [2,50,768];  v = c seen as [100,768];  w = v seen as [2,50,12,64]
After    w = x seen as [2,50,12,64], its layout bacd
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..layout.layout import permute_layout, plain_layout, same_bytes
from ..layout.views import Seen, layout_through
from . import program as ir
from .dims import Dim, Expr, Shape
from .graph import Graph
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
        self._copied: dict[int, int] = {}  # what the copies for reshapes are of
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
        """``value`` seen with another shape; copied first where no layout says that."""
        source = self.values[value]
        if source.shape == shape:
            return value
        plain, seen = plain_layout(len(source.shape)), plain_layout(len(shape))
        layout = layout_through(Seen(source.shape, plain), Seen(shape, seen), source.layout)
        if layout is None:
            copy = self.plain_copy(value)
            self._copied[copy] = value
            value, layout = copy, seen
        return self._view(value, shape, layout)

    def permute(self, value: int, axes: Sequence[int]) -> int:
        """``value`` with its axes reordered: the same bytes under a permuted layout."""
        source = self.values[value]
        shape = tuple(source.shape[axis] for axis in axes)
        return self._view(value, shape, permute_layout(source.layout, axes))

    def _view(self, value: int, shape: Shape, layout: str) -> int:
        """A view of the bytes of ``value``; of what was copied to them, where that can be seen so."""
        root = self._root(value)
        while root in self._copied:
            source, plain = self._copied[root], plain_layout(len(self.values[root].shape))
            seen = Seen(self.values[root].shape, plain), Seen(shape, layout)
            through = layout_through(*seen, self.values[source].layout)
            if through is None:
                break
            root, layout = self._root(source), through
        name, dtype = self.values[value].name, self.values[root].dtype
        return self._add(ir.Value(name, shape, dtype, "local", layout, alias_of=root))

    def _root(self, value: int) -> int:
        while self.values[value].alias_of >= 0:
            value = self.values[value].alias_of
        return value

    def align(self, value: int, rank: int) -> int:
        """``value`` with axes of extent 1 put in front until it has ``rank`` axes."""
        shape = self.values[value].shape
        return self.reshape(value, (1,) * (rank - len(shape)) + shape)

    def plain_copy(self, value: int) -> int:
        """A copy in the plain layout, which views of it do not see around."""
        source = self.values[value]
        return self.step("reorder", ir.Reorder(), source.shape, [("src", value)], source.dtype)

    def plain(self, value: int) -> int:
        """``value``, or a copy where its bytes stand in another order than those of its plain layout."""
        told = self.values[value]
        stands_so = same_bytes(told.layout, plain_layout(len(told.shape)), told.shape)
        return value if stands_so else self.plain_copy(value)

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
        root = self._root(value)
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
        if not target.shape:  # no library copies tensors of rank 0
            value, output = self.reshape(value, (1,)), self._view(output, (1,), plain_layout(1))
        self.steps.append(reorder(self.unique("reorder"), value, output))

    def finish(self) -> ir.Program:
        """The program, without copies for reshapes that no step reads; values keep their numbers."""
        graph = Graph(ir.Program(self.name, tuple(self.values), tuple(self.steps), tuple(self.symbols)))
        for at, step in reversed(list(enumerate(self.steps))):
            copies = isinstance(step.attrs, ir.Reorder) and step.dst in self._copied
            if copies and self.values[step.dst].alias_of < 0 and not graph.is_read(step.dst):
                graph.drop(at)
        return replace(graph.program, steps=tuple(step for step in graph.steps if step))

    def tidied(self) -> ir.Program:
        """:meth:`finish`, without views that nothing reads either: later ones may see around them."""
        return Graph(self.finish()).finish()


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
