"""Programs in plain layouts, executed step by step in float32 with results rounded to their types.

Kernels for bfloat16 multiply rounded operands exactly and add up in float32, which is what those for float32
do with the same operands.  What they hold in a shorter type inside of a step, as the weights of an attention,
is not rounded here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.element_types import item_bytes, numpy_type
from tvm_mxplan.core.kernel import alone
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import program as ir

from .library import SHORT, widened


class RoundedProgram:
    """A program of numbers that are known, to be run on any inputs.

    Parameters
    ----------
    constants : by the index that values have, in the types that they have.
    """

    def __init__(self, program: ir.Program, constants: Sequence[np.ndarray]) -> None:
        self.program = program
        self._constants = [np.asarray(one) for one in constants]
        self._buffers: dict[int, np.ndarray] = {}
        self._calls = [self._call(step) for step in program.steps]

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Outputs in logical shapes, which are those of plain layouts."""
        values = self.program.values
        self._buffers = {}
        for number, value in enumerate(values):
            if value.kind == "input":
                self._buffers[number] = np.ascontiguousarray(inputs[value.index]).reshape(-1)
            elif value.kind in ("local", "output") and value.alias_of < 0:
                self._buffers[number] = np.zeros(_elements(value), _held(value))
        for call in self._calls:
            call()
        outputs = sorted(self.program.of_kind("output"), key=lambda number: values[number].index)
        return [self._numbers(number).copy() for number in outputs]

    def _call(self, step: ir.Step) -> Callable[[], None]:
        single, order = alone(self.program, step)
        wide = widened(single)
        reads = [number for number in order if not self._is_constant(number)]
        fixed = [_wide(self._constant(number)) for number in order if self._is_constant(number)]
        function = OneDNN().trial(wide, fixed)

        def call() -> None:
            results = {number: np.ascontiguousarray(self._numbers(number)) for number in step.results}
            function(*(np.ascontiguousarray(self._numbers(number)) for number in reads), *results.values())
            for number, result in results.items():
                dtype = self.program.values[number].dtype
                rounded = _wide(result.astype(numpy_type(dtype))) if dtype == SHORT else result
                self._numbers(number)[...] = rounded

        return call

    def _is_constant(self, number: int) -> bool:
        return self.program.values[self.program.root(number)].kind == "constant"

    def _constant(self, number: int) -> np.ndarray:
        value, root = self.program.values[number], self.program.values[self.program.root(number)]
        return self._seen(self._constants[root.index].reshape(-1), number, value)

    def _numbers(self, number: int) -> np.ndarray:
        """The numbers of a value where they stand, in its layout."""
        return self._seen(self._buffers[self.program.root(number)], number, self.program.values[number])

    def _seen(self, buffer: np.ndarray, number: int, value: ir.Value) -> np.ndarray:
        offset = 0
        while self.program.values[number].alias_of >= 0:
            one = self.program.values[number]
            offset += one.alias_offset // item_bytes(one.dtype)
            number = one.alias_of
        layout = parse_layout(value.layout)
        return buffer[offset : offset + _elements(value)].reshape(layout.physical_shape(value.shape))


def _elements(value: ir.Value) -> int:
    return parse_layout(value.layout).elements(value.shape)


def _held(value: ir.Value) -> np.dtype:
    return np.dtype(np.float32) if value.dtype == SHORT else numpy_type(value.dtype)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == numpy_type(SHORT) else array
