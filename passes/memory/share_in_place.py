"""Results in place: a step writes over what it reads for the last time.

Before   v3 = convolution(x, w) post_ops=[binary add v2, relu]       v2 is not read again
After    v3 = convolution(x, w) post_ops=[sum, relu]                 v3 aliases v2

Also elementwise and binary steps over their source.  A result goes in place only where the source dies in
this step, no other alias of its bytes is read later, layouts and bytes agree, and the source is the
region's own.  The caller asks the backend again and keeps the old form where an implementation would change.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.renumber import sort_values
from tvm_mxplan.core.program.specialize import typical


def share_in_place(program: ir.Program, backend: Backend) -> ir.Program:
    """The program with results in place where that is safe and costs nothing."""
    refused: set[int] = set()
    while True:
        shared = _Sharing(program, refused).run()
        described = backend.describe(typical(shared))
        changed = {
            at
            for at, (step, info) in enumerate(zip(shared.steps, described.steps, strict=True))
            if at not in refused and (info.error or info.implementation != step.implementation)
        }
        if not changed:
            return sort_values(shared)
        refused |= changed


def _place(value: ir.Value) -> tuple[object, ...]:
    """All that two values have to agree in to have the same bytes element by element."""
    return value.shape, value.layout, value.dtype, value.nbytes


class _Sharing:
    def __init__(self, program: ir.Program, refused: set[int]) -> None:
        self.program = program
        self.refused = refused
        self.values = list(program.values)
        self.steps = list(program.steps)
        self.in_place: set[int] = set()
        # The value whose bytes each one has, and the last step that reads them, by that value.
        self.roots = list(range(len(self.values)))
        for number, value in enumerate(self.values):
            if value.alias_of >= 0:
                self.roots[number] = value.alias_of
        self.last_read: dict[int, int] = {}
        for at, step in enumerate(program.steps):
            for read in step.reads():
                self.last_read[self._root(read)] = at

    def run(self) -> ir.Program:
        for at, step in enumerate(self.steps):
            if at not in self.refused and self._is_free(step.dst):
                self._share(at, step)
        return replace(self.program, values=tuple(self.values), steps=tuple(self.steps))

    def _is_free(self, dst: int) -> bool:
        return self.values[dst].kind == "local" and self.values[dst].alias_of < 0

    def _share(self, at: int, step: ir.Step) -> None:
        for position, post_op in enumerate(step.post_ops):
            if not isinstance(post_op, ir.BinaryPostOp) or post_op.algorithm != "add":
                continue
            if self._dies(post_op.value, at, step.dst) and self._is_read_once(step, post_op.value):
                post_ops = (*step.post_ops[:position], ir.SumPostOp(), *step.post_ops[position + 1 :])
                self.steps[at] = replace(step, post_ops=post_ops)
                self._alias(step.dst, post_op.value)
                return
        if isinstance(step.attrs, ir.Eltwise | ir.Binary):
            src = step.operand("src")
            if self._dies(src, at, step.dst) and self._is_read_once(step, src):
                self._alias(step.dst, src)

    def _is_read_once(self, step: ir.Step, source: int) -> bool:
        """True if ``step`` reads the bytes of ``source`` nowhere else: no other view of them, say."""
        root = self._root(source)
        return sum(self._root(value) == root for value in step.reads()) == 1

    def _alias(self, dst: int, source: int) -> None:
        root = self._root(source)
        self.last_read[root] = max(self.last_read.get(root, -1), self.last_read.get(dst, -1))
        self.roots[dst] = root
        self.values[dst] = replace(self.values[dst], alias_of=source)
        self.in_place.add(dst)

    def _dies(self, source: int, at: int, dst: int) -> bool:
        """True if ``dst`` may take the bytes of ``source``, which step ``at`` reads."""
        value, result = self.values[source], self.values[dst]
        if value.kind != "local" or (value.alias_of >= 0 and source not in self.in_place):
            return False
        same = _place(value) == _place(result)
        root = self._root(source)
        return same and self.values[root].kind == "local" and self.last_read.get(root, -1) <= at

    def _root(self, value: int) -> int:
        passed = []
        while self.roots[value] != value:
            passed.append(value)
            value = self.roots[value]
        for number in passed:  # the next way is shorter
            self.roots[number] = value
        return value
