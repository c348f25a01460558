"""Random region programs of slices, concatenations and sums, with the numbers they must give."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.renumber import select_values, sort_values

Array = np.ndarray[Any, np.dtype[Any]]
RELU = ir.Eltwise("relu", 0.0, 0.0)
POINTWISE = ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)


def with_first(program: ir.Program, random: random.Random) -> ir.Program:
    """The program with a value in front that others view: a number of 0 is one like any other."""
    owners = [
        number
        for number, value in enumerate(program.values)
        if value.alias_of < 0 and any(other.alias_of == number for other in program.values)
    ]
    first = random.choice(owners or [0])
    return select_values(program, [first, *(at for at in range(len(program.values)) if at != first)])


class RandomProgram:
    """A program in plain layouts; ``arrays`` holds what numpy makes of each value.

    In every second one the first value is one that others view.

    Attributes
    ----------
    inputs, expected : arrays by the index of inputs and of outputs.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.builder = ProgramBuilder("region")
        self.arrays: dict[int, Array] = {}
        self.read: set[int] = set()
        batch = self.random.choice((1, 1, 2))
        self.inputs = [self._normal(batch, channels, 3, 3) for channels in (32, self.random.choice((16, 17)))]
        for at, array in enumerate(self.inputs):
            self.arrays[self.builder.port("input", f"x{at}", array.shape, "float32")] = array
        for _ in range(self.random.randint(4, 14)):
            self.random.choice((self._relu, self._add, self._slice, self._slice, self._concat, self._conv))()
        unread = [value for value in self.arrays if value not in self.read]
        some = self.random.sample(sorted(self.read & self.arrays.keys()), 1)
        self.expected = [self.arrays[value] for value in unread + some]
        for at, value in enumerate(unread + some):
            shape = self.builder.values[value].shape
            self.builder.write_output(value, self.builder.port("output", f"y{at}", shape, "float32"))
        self.program = sort_values(self.builder.finish())
        if seed % 2:
            self.program = with_first(self.program, self.random)

    def _normal(self, *shape: int) -> Array:
        return self.numbers.standard_normal(shape, np.float32)

    def _pick(self, *accept: int) -> int:
        """A value, preferably a late one; ``accept``: whose number of channels it must have."""
        fitting = [v for v, a in self.arrays.items() if not accept or a.shape[1] in accept]
        return fitting[max(0, len(fitting) - 1 - abs(int(self.random.gauss(0, 2))))]

    def _emit(self, stem: str, attrs: ir.Attributes, result: Array, *operands: tuple[str, int]) -> None:
        self.read.update(value for _, value in operands)
        self.arrays[self.builder.step(stem, attrs, result.shape, operands)] = result

    def _relu(self) -> None:
        x = self._pick()
        self._emit("relu", RELU, np.maximum(self.arrays[x], 0), ("src", x))

    def _add(self) -> None:
        x = self._pick()
        y = self._pick(self.arrays[x].shape[1])
        total = self.arrays[x] + self.arrays[y]
        self._emit("add", ir.Binary("add"), total, ("src", x), ("src1", y))

    def _slice(self) -> None:
        x = self._pick()
        channels = self.arrays[x].shape[1]
        if channels > 1:
            begin = self.random.choice((0, channels // 2, self.random.randrange(1, channels)))
            end = self.random.choice((channels, self.random.randint(begin + 1, channels)))
            if (begin, end) != (0, channels):
                part = self.arrays[x][:, begin:end]
                self._emit("slice", ir.Slice((0, begin, 0, 0)), part, ("src", x))

    def _concat(self) -> None:
        pieces = list(dict.fromkeys(self._pick() for _ in range(self.random.randint(2, 3))))
        whole = np.concatenate([self.arrays[piece] for piece in pieces], 1)
        if whole.shape[1] < 200:
            self._emit("concat", ir.Concat(1), whole, *[("src", piece) for piece in pieces])

    def _conv(self) -> None:
        x = self._pick()
        depth, channels = self.arrays[x].shape[1], self.random.choice((16, 17, 32))
        array = self._normal(channels, depth, 1, 1) / np.float32(depth**0.5)
        weights = self.builder.constant(array)
        result = np.einsum("nihw,oi->nohw", self.arrays[x], array[:, :, 0, 0], dtype="float32")
        self._emit("conv", POINTWISE, result, ("src", x), ("weights", weights))
