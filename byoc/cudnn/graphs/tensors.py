"""``GraphBuilder``: the tensors and nodes of one operation graph, as the planner reads them.

A stored tensor's uid is one more than the place of its value among the step's operands, those of post-ops
behind them: so the runtime binds it.  The result of a node is virtual, but for the last one's, which is the
step's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError

from ..layout_rules import operands

TYPES = {
    "float32": "FLOAT",
    "float16": "HALF",
    "bfloat16": "BFLOAT16",
    "int8": "INT8",
    "uint8": "UINT8",
    "int32": "INT32",
}
COMPUTE = "FLOAT"
_NUMBERS, _VIRTUAL = 500, 1000
"""Uids of numbers, and of tensors that nobody stores, begin here."""
_LEAST_RANK = 3
Ints = tuple[int, ...]


class GraphBuilder:
    """The graph of one step, built node by node; see the module's text."""

    def __init__(self, program: ir.Program, step: ir.Step) -> None:
        self.program, self.step = program, step
        self._operands = operands(step)
        self._tensors: dict[int, dict[str, Any]] = {}
        self._nodes: list[dict[str, Any]] = []
        self._shape: Ints = ()
        self._order: Ints = ()

    # --- the step's values ------------------------------------------------------------------------------

    def has(self, role: str) -> bool:
        return any(name == role for name, _ in self._operands)

    def place(self, role: str) -> int:
        """The place of the first operand in a role."""
        return [name for name, _ in self._operands].index(role)

    def post_op(self, number: int) -> int:
        """The place of what the binary post-op of that number, of binary ones, reads."""
        return len(self.step.operands) + number

    def value(self, place: int) -> ir.Value:
        return self.program.values[self._operands[place][1]]

    def shape(self, place: int) -> Ints:
        return static_shape(self.value(place).shape)

    def strides(self, place: int) -> Ints:
        """Elements from one index to the next along each dimension."""
        return parse_layout(self.value(place).layout).strides(self.shape(place))

    @property
    def dst(self) -> int:
        return self.place("dst")

    # --- tensors ----------------------------------------------------------------------------------------

    def stored(self, place: int, shape: Ints | None = None, strides: Ints | None = None) -> int:
        """The tensor of an operand, seen with another shape and strides where they are given."""
        shape = self.shape(place) if shape is None else shape
        strides = self.strides(place) if strides is None else strides
        missing = max(0, _LEAST_RANK - len(shape))
        shape, strides = (1,) * missing + shape, (1,) * missing + strides
        self._tensors[1 + place] = _tensor(1 + place, shape, strides, self.value(place).dtype)
        return 1 + place

    def check_batches(self, shape: Ints, batch: int, places: Ints) -> None:
        """Refuses an operand behind a product that differs between ``places`` and is one for all batches.

        An engine of cuDNN 9.19 for int8 on SM 90 gives every image but the first the wrong numbers of such an
        operand, and nobody has tried the others.
        """
        if shape[0] == 1 < batch and any(extent > 1 for extent in places):
            raise UnsupportedError(
                "an operand of many places behind a product of several images, and one for all of them"
            )

    def vector(self, place: int, axis: int, rank: int) -> int:
        """A vector that is broadcast along all axes but one."""
        (extent,) = self.shape(place)
        shape = tuple(extent if at == axis else 1 for at in range(rank))
        return self.stored(place, shape, tuple(1 if at == axis else extent for at in range(rank)))

    def single(self, place: int, rank: int) -> int:
        """A tensor of one element."""
        return self.stored(place, (1,) * rank, (1,) * rank)

    def number(self, value: float) -> int:
        """A number that executions are handed from the host."""
        uid = _NUMBERS + len(self._tensors)
        self._tensors[uid] = {"uid": uid, "number": value}
        return uid

    # --- nodes ------------------------------------------------------------------------------------------

    def results(self, shape: Ints, strides: Ints) -> None:
        """Sets the shape of what nodes give from now on, in the order of ``strides``."""
        missing = max(0, _LEAST_RANK - len(shape))
        self._shape = (1,) * missing + shape
        inner = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
        self._order = (*range(missing), *(missing + axis for axis in inner))

    def node(self, kind: str, inputs: Sequence[int], dtype: str = "float32", **attributes: Any) -> int:
        """One more node; gives the uid of its result."""
        uid = _VIRTUAL + len(self._nodes)
        self._nodes.append({"kind": kind, **attributes, "in": list(inputs), "out": uid})
        self._tensors[uid] = _tensor(uid, self._shape, _packed(self._shape, self._order), dtype, virtual=True)
        return uid

    def results_of(self, kind: str, inputs: Sequence[int], stored: Sequence[int]) -> dict[str, Any]:
        """The graph of one node with several results, which are ``stored`` tensors."""
        self._nodes.append({"kind": kind, "in": list(inputs), "out": list(stored)})
        return self._request()

    def pointwise(self, mode: str, *inputs: int, **attributes: Any) -> int:
        return self.node("pointwise", inputs, mode=mode, **attributes)

    def request(self, shape: Ints | None = None, strides: Ints | None = None) -> dict[str, Any]:
        """The graph whose last node writes the step's result."""
        last = self._nodes[-1]
        del self._tensors[last["out"]]
        last["out"] = self.stored(self.dst, shape, strides)
        return self._request()

    def _request(self) -> dict[str, Any]:
        dtype = self.value(self.dst).dtype
        types = {"io": TYPES[dtype], "intermediate": COMPUTE, "compute": COMPUTE}
        return {"types": types, "tensors": list(self._tensors.values()), "nodes": self._nodes}


def _tensor(uid: int, shape: Ints, strides: Ints, dtype: str, virtual: bool = False) -> dict[str, Any]:
    return {"uid": uid, "dim": shape, "stride": strides, "type": TYPES[dtype], "virtual": virtual}


def _packed(shape: Ints, order: Ints) -> Ints:
    """Strides of a shape whose axes are stored in an order, the outermost first."""
    strides, step = [1] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)
