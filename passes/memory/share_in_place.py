"""Results in place: a step writes over what it reads for the last time.

Before   v3 = convolution(x, w) post_ops=[binary add v2, relu]       v2 is not read again
After    v3 = convolution(x, w) post_ops=[sum, relu]                 v3 aliases v2

Also elementwise and binary steps, images times their gates, and what writes over some elements, over their
source.  A result goes in place
only where the source dies in this step, no other alias of its bytes is read later, layouts and bytes agree,
and the source is the region's own, or a view of all bytes of such a one.  The caller asks the backend again
and keeps the old form where an implementation would change.
"""

from __future__ import annotations

from dataclasses import replace

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.graph import Graph
from tvm_mxplan.core.program.renumber import sort_values
from tvm_mxplan.core.program.specialize import typical

_WRITING_OVER = ir.Put | ir.Scatter | ir.ScatterElements


def share_in_place(program: ir.Program, backend: Backend) -> ir.Program:
    """The program with results in place where that is safe and costs nothing."""
    refused: set[int] = set()
    while True:
        shared = sort_values(_Sharing(program, refused).run())
        described = backend.describe(typical(shared))
        changed = {
            at
            for at, (step, info) in enumerate(zip(shared.steps, described.steps, strict=True))
            if at not in refused and (info.error or info.implementation != step.implementation)
        }
        if not changed:
            return shared
        refused |= changed


def _place(value: ir.Value) -> tuple[object, ...]:
    """All that two values have to agree in to have the same bytes element by element."""
    return value.shape, value.layout, value.dtype, value.nbytes


class _Sharing:
    def __init__(self, program: ir.Program, refused: set[int]) -> None:
        self.graph = Graph(program)
        self.refused = refused
        self.in_place: set[int] = set()
        # By the value that owns the bytes: the last step that reads them.
        self.last_read: dict[int, int] = {}
        for at, step in enumerate(program.steps):
            for read in step.reads():
                self.last_read[self.graph.root(read)] = at

    def run(self) -> ir.Program:
        for at, step in enumerate(self.graph.steps):
            if step and at not in self.refused and self._is_free(step.dst):
                self._share(at, step)
        return self.graph.finish()

    def _is_free(self, dst: int) -> bool:
        value = self.graph.values[dst]
        return value.kind == "local" and value.alias_of < 0

    def _share(self, at: int, step: ir.Step) -> None:
        for position, post_op in enumerate(step.post_ops):
            if not isinstance(post_op, ir.BinaryPostOp) or post_op.algorithm != "add":
                continue
            if self._dies(post_op.value, at, step.dst) and self._is_read_once(step, post_op.value):
                post_ops = (*step.post_ops[:position], ir.SumPostOp(), *step.post_ops[position + 1 :])
                self.graph.replace(at, replace(step, post_ops=post_ops))
                self._alias(step.dst, post_op.value)
                return
        if isinstance(step.attrs, ir.Eltwise | ir.Binary | ir.SqueezeExcite | _WRITING_OVER):
            src = step.operand("src")
            if self._dies(src, at, step.dst) and self._is_read_once(step, src):
                self._alias(step.dst, src)

    def _is_read_once(self, step: ir.Step, source: int) -> bool:
        """True if ``step`` reads the bytes of ``source`` nowhere else: no other view of them, say."""
        root = self.graph.root(source)
        return sum(self.graph.root(value) == root for value in step.reads()) == 1

    def _alias(self, dst: int, source: int) -> None:
        root = self.graph.root(source)
        self.last_read[root] = max(self.last_read.get(root, -1), self.last_read.get(dst, -1))
        self.graph.alias(dst, source)
        self.in_place.add(dst)

    def _dies(self, source: int, at: int, dst: int) -> bool:
        """True if ``dst`` may take the bytes of ``source``, which step ``at`` reads."""
        value, result = self.graph.values[source], self.graph.values[dst]
        if value.kind != "local" or not self._is_whole(source):
            return False
        same = _place(value) == _place(result)
        root = self.graph.root(source)
        return same and self.graph.values[root].kind == "local" and self.last_read.get(root, -1) <= at

    def _is_whole(self, source: int) -> bool:
        """True of a value with bytes of its own, of all bytes of such a one, and of what is in place."""
        chain = [self.graph.values[number] for number in self.graph.chain(source)]
        whole = all(value.alias_offset == 0 and value.nbytes == chain[-1].nbytes >= 0 for value in chain)
        return whole or len(chain) == 1 or source in self.in_place
