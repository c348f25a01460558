"""A graph under construction: nodes with the shapes and types of all that they make.

With ``named`` the first axis of every input is open: what is built fits any number of samples, so no node may
name that number, and axis 0 stays what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray
Shape = tuple[int, ...]
MOST = 120_000
"""Numbers of a tensor that a move makes."""


@dataclass(frozen=True)
class Tensor:
    """A value of the graph."""

    name: str
    shape: Shape
    dtype: str = "float32"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)


class Graph:
    """Nodes so far; ``values`` are the tensors in float32 that more can be built on."""

    def __init__(self, random: np.random.Generator, opset: int, *, named: bool = False) -> None:
        self.random, self.opset, self.named = random, opset, named
        self.values: list[Tensor] = []
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: dict[str, tuple[Tensor, int]] = {}
        """Inputs, and below what their integers are; 0 for real numbers."""
        self.single: set[str] = set()
        """Inputs without an axis of samples."""
        self._constants: list[onnx.TensorProto] = []
        self._used: set[str] = set()
        self._extra: list[Tensor] = []
        self._before: set[str] = set()
        self._number = 0

    # --- choices ----------------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def pick(self, options: Sequence) -> object:  # type: ignore[type-arg]
        return options[int(self.random.integers(len(options)))]

    def between(self, least: int, most: int) -> int:
        """A number from ``least`` to ``most``."""
        return int(self.random.integers(least, most + 1))

    def axes(self, x: Tensor) -> list[int]:
        """Axes that may change their extent or place."""
        return list(range(1 if self.named else 0, x.rank))

    # --- parts ------------------------------------------------------------------------------------------

    def input(self, shape: Shape, dtype: str = "float32", below: int = 0, *, single: bool = False) -> Tensor:
        """An input of the model; one that is ``single`` has no axis of samples."""
        made = Tensor(f"input{len(self.inputs)}", shape, dtype)
        self.inputs[made.name] = (made, below)
        if single:
            self.single.add(made.name)
        return made

    def constant(self, array: Array) -> str:
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def integers(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, "int64"))

    def numbers(self, shape: Shape, scale: float = 1.0, offset: float = 0.0) -> str:
        """A constant of normally distributed numbers."""
        array = self.random.standard_normal(shape) * scale + offset
        return self.constant(array.astype("float32"))

    def weights(self, shape: Shape, depth: int) -> str:
        """A constant that keeps the size of what sums over ``depth`` numbers are made of."""
        return self.numbers(shape, 1 / sqrt(max(depth, 1)))

    def positive(self, shape: Shape) -> str:
        return self.constant(self.random.uniform(0.5, 2.0, shape).astype("float32"))

    def add(
        self,
        operator: str,
        inputs: Sequence[Tensor | str],
        *shapes: Shape,
        dtype: str = "float32",
        domain: str = "",
        **attributes: object,
    ) -> list[Tensor]:
        """Adds a node and returns its results, of these shapes."""
        number = self._number = self._number + 1
        results = [Tensor(f"v{number}_{at}", shape, dtype) for at, shape in enumerate(shapes)]
        names = [one.name if isinstance(one, Tensor) else one for one in inputs]
        self._used |= set(names)
        self.nodes.append(
            helper.make_node(
                operator,
                names,
                [result.name for result in results],
                f"{operator.lower()}_{number}",
                domain=domain,
                **attributes,
            )
        )
        return results

    def node(
        self,
        operator: str,
        inputs: Sequence[Tensor | str],
        shape: Shape,
        dtype: str = "float32",
        **attributes: object,
    ) -> Tensor:
        """Adds a node with one result."""
        return self.add(operator, inputs, shape, dtype=dtype, **attributes)[0]

    def again(self, node: onnx.NodeProto, inputs: Sequence[Tensor | str]) -> None:
        """Adds a node that was taken out, with other inputs."""
        names = [one.name if isinstance(one, Tensor) else one for one in inputs]
        self._used |= set(names)
        del node.input[:]
        node.input.extend(names)
        self.nodes.append(node)

    def reads(self, x: Tensor) -> None:
        """Notes that something reads a value without naming it among its operands."""
        self._used.add(x.name)

    def shape_of(self, constant: str) -> Shape:
        """The shape of a constant by its name."""
        return tuple(next(one.dims for one in self._constants if one.name == constant))

    def unary(self, operator: str, x: Tensor, **attributes: object) -> Tensor:
        return self.node(operator, [x], x.shape, **attributes)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", [x], x.shape, dtype, to=to)

    def reshape(self, x: Tensor, shape: Shape) -> Tensor:
        """A reshape; extents that stay, or one that follows from the others, are written so by chance."""
        written = list(shape)
        if self.named:
            assert shape[0] == x.shape[0]
            written[0] = 0
        elif shape[0] == x.shape[0] and self.chance(0.3):
            written[0] = 0
        if self.chance(0.3):
            free = [at for at, extent in enumerate(written) if extent > 0]
            if free:
                written[int(self.pick(free))] = -1  # type: ignore[call-overload]
        return self.node("Reshape", [x, self.integers(*written)], shape)

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        return self.node("Transpose", [x], tuple(x.shape[axis] for axis in order), perm=list(order))

    def second(self, x: Tensor) -> str:
        """A constant that broadcasts to ``x``: a number, a vector, a row, or all of it."""
        how = self.pick(["number", "scalar", "channel", "last", "whole", "some"])
        kept = {
            "number": set(), "scalar": set(), "channel": {1}, "last": {x.rank - 1},
            "whole": set(range(x.rank)), "some": {axis for axis in range(x.rank) if self.chance(0.5)},
        }[str(how)]  # fmt: skip
        if self.named:
            kept -= {0}
        shape = tuple(extent if axis in kept else 1 for axis, extent in enumerate(x.shape))
        if how == "scalar":
            shape = ()
        elif shape and self.chance(0.3):  # ONNX aligns shapes at their ends
            while len(shape) > 1 and shape[0] == 1:
                shape = shape[1:]
        return self.numbers(shape)

    # --- attempts ---------------------------------------------------------------------------------------

    def is_free(self, x: Tensor) -> bool:
        """True for a value that nothing reads yet."""
        return x.name not in self._used

    def mark(self) -> tuple[int, ...]:
        """The state that ``restore`` goes back to."""
        self._before = set(self._used)
        return len(self.nodes), len(self._constants), len(self._extra), len(self.values)

    def restore(self, mark: tuple[int, ...]) -> None:
        """Takes back what was added since the last mark."""
        nodes, constants, extra, values = mark
        del self.nodes[nodes:], self._constants[constants:], self._extra[extra:], self.values[values:]
        self._used = self._before

    def has_kept(self, mark: tuple[int, ...]) -> bool:
        """True if a result of the model was added since."""
        return len(self._extra) > mark[2]

    # --- the end ----------------------------------------------------------------------------------------

    def keep(self, x: Tensor) -> None:
        """Makes a value that nothing else is built on, such as one of integers, a result of the model."""
        self._extra.append(x)

    def finish(self) -> onnx.ModelProto:
        """The model; its results are all that nothing reads, and a few of the others."""
        ends = [value for value in self.values if value.name not in self._used]
        inside = [value for value in self.values if value.name in self._used and value.name[0] == "v"]
        more = [value for value in inside if self.chance(1.0 / (1 + len(inside)))]
        results = list(dict.fromkeys([*more, *ends, *self._extra]))
        results = [value for value in results if value.name not in self.inputs]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [self._declared(value) for value, _ in self.inputs.values()],
            [self._declared(value, known=False) for value in results],
            self._constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10
        return model

    def _declared(self, value: Tensor, *, known: bool = True) -> onnx.ValueInfoProto:
        shape: list[int | str | None] = list(value.shape)
        if self.named and shape and value.name not in self.single:
            shape = ["N" if known else None, *shape[1:]]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
        return helper.make_tensor_value_info(value.name, kind, shape)
