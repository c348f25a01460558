"""Operation graphs: a step of a program as cuDNN's planner is asked for it (``native/planner.cc``).

    y = act(convolution(x, w) + residual + bias)

What is added comes in that order, and a bias of zeros where an activation or a residual has none: cuDNN 9.19
has engines without code generation for this graph, and for parts of it that begin at the left or leave out
the middle.
"""

from __future__ import annotations

from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import UnsupportedError

from . import layout_rules

TYPES = {"float32": "FLOAT", "float16": "HALF"}
ACTIVATIONS = {"relu": "RELU_FWD", "logistic": "SIGMOID_FWD", "tanh": "TANH_FWD"}
_COMPUTE = "FLOAT"
_VIRTUAL = 1000
"""Uids of tensors that nobody stores begin here."""


def graph_of(program: ir.Program, step: ir.Step) -> dict[str, Any]:
    """Tensors, nodes and types of a convolution; UnsupportedError where no graph is made of it."""
    attrs = step.attrs
    if not isinstance(attrs, ir.Convolution) or attrs.algorithm != "direct" or attrs.preferred:
        raise UnsupportedError(f"cuDNN is given no {step.kind} of this kind")
    reason = layout_rules.why_not(program, step)
    if reason:
        raise UnsupportedError(reason)
    return _Convolution(program, step, attrs).request()


class _Convolution:
    """The graph of one convolution, built node by node."""

    def __init__(self, program: ir.Program, step: ir.Step, attrs: ir.Convolution) -> None:
        self.program, self.step, self.attrs = program, step, attrs
        self.values = layout_rules.operands(step)
        dst = program.values[step.dst]
        self.shape, self.dtype = static_shape(dst.shape), dst.dtype
        self.tensors: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []

    def request(self) -> dict[str, Any]:
        spatial = len(self.shape) - 2
        begin, end = self.attrs.padding[:spatial], self.attrs.padding[spatial:]
        convolution = {
            "kind": "convolution",
            "pre_padding": begin,
            "post_padding": end,
            "stride": self.attrs.strides,
            "dilation": self.attrs.dilation,
        }
        self._add(convolution, [self._stored("src"), self._filters()])
        for post_op in self.step.post_ops:
            if isinstance(post_op, ir.BinaryPostOp) and post_op.algorithm == "add":
                self._add({"kind": "pointwise", "mode": "ADD"}, [self._last(), self._stored("src1")])
        if any(role == "bias" for role, _ in self.values):
            self._add({"kind": "pointwise", "mode": "ADD"}, [self._last(), self._bias()])
        for post_op in self.step.post_ops:
            if isinstance(post_op, ir.EltwisePostOp) and post_op.algorithm in ACTIVATIONS:
                self._add({"kind": "pointwise", "mode": ACTIVATIONS[post_op.algorithm]}, [self._last()])
        self._end()
        known = {"convolution": 1, "pointwise": len(self.step.post_ops)}
        asked = len(self.nodes) - any(role == "bias" for role, _ in self.values)
        if asked != known["convolution"] + known["pointwise"]:
            raise UnsupportedError("a post-op that is none of cuDNN's")
        types = {"io": TYPES[self.dtype], "intermediate": _COMPUTE, "compute": _COMPUTE}
        return {"types": types, "tensors": self.tensors, "nodes": self.nodes}

    def _add(self, node: dict[str, Any], inputs: list[int]) -> None:
        self.nodes.append({**node, "in": inputs, "out": _VIRTUAL + len(self.nodes)})

    def _last(self) -> int:
        out: int = self.nodes[-1]["out"]
        return out

    def _uid(self, role: str) -> int:
        return 1 + [name for name, _ in self.values].index(role)

    def _stored(self, role: str) -> int:
        uid = self._uid(role)
        value = self.program.values[self.values[uid - 1][1]]
        self._tensor(uid, static_shape(value.shape), value.dtype)
        return uid

    def _filters(self) -> int:
        uid = self._uid("weights")
        value = self.program.values[self.values[uid - 1][1]]
        shape = static_shape(value.shape)
        if self.attrs.groups > 1:
            shape = (shape[0] * shape[1], *shape[2:])
        self._tensor(uid, shape, value.dtype)
        return uid

    def _bias(self) -> int:
        uid = self._uid("bias")
        value = self.program.values[self.values[uid - 1][1]]
        self._tensor(uid, (1, *static_shape(value.shape), *(1,) * (len(self.shape) - 2)), value.dtype)
        return uid

    def _end(self) -> None:
        """The last node writes dst, those before it nothing that is stored."""
        dst = self._uid("dst")
        self.nodes[-1]["out"] = dst
        for node in self.nodes[:-1]:
            self._tensor(node["out"], self.shape, "float32", virtual=True)
        self._tensor(dst, self.shape, self.dtype)

    def _tensor(self, uid: int, shape: tuple[int, ...], dtype: str, virtual: bool = False) -> None:
        tensor = {"uid": uid, "dim": shape, "stride": channels_last_strides(shape), "type": TYPES[dtype]}
        self.tensors.append({**tensor, "virtual": virtual})


def channels_last_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one index to the next, by dimension, channels innermost."""
    strides = [1] * len(shape)
    step = 1
    for axis in (1, *reversed(range(2, len(shape))), 0):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)
