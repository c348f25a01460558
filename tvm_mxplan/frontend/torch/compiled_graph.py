"""A graph of ATen operators that is compiled when it is called, for the weights that it is called with."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...execution.executable import Executable
from ...execution.ffi import tvm_ffi
from ..aligned import ALIGNMENT
from .kinds import is_tensor
from .plain_graph import Result, free_numbers, import_graph

if TYPE_CHECKING:
    import tvm

_SAMPLED = 16
"""Elements of a weight that are looked at in each call."""
MOST = 64
"""Sets of weights, and of numbers that are no sizes, for which one graph is compiled."""


@dataclass(frozen=True)
class Sample:
    """Some elements of a tensor.

    Attributes
    ----------
    memory : the bytes of the memory that the tensor stands in.
    places : those of the elements among them.
    before : what stood there.
    """

    memory: np.ndarray
    places: np.ndarray
    before: bytes

    @classmethod
    def of(cls, memory: np.ndarray, places: np.ndarray) -> Sample:
        return cls(memory, places, memory[places].tobytes())

    def is_unchanged(self) -> bool:
        return self.memory[self.places].tobytes() == self.before


@dataclass(frozen=True)
class _Made:
    """A compilation.

    Attributes
    ----------
    versions : how often PyTorch had written to each weight.
    weights : kept, lest others come to stand where they stood.
    samples : some elements of each weight, in PyTorch's memory, and what their bytes were.
    taken : the arguments that it takes.
    plan : for each result of the graph, whether it is the executable's next one.
    """

    versions: tuple[int, ...]
    weights: tuple[Any, ...]
    samples: tuple[Sample, ...]
    executable: Executable
    taken: tuple[int, ...]
    plan: tuple[Result, ...]


class CompiledGraph:
    """Compiles a graph for the weights that it is called with, and runs it.

    Parameters
    ----------
    static : indices of inputs that are weights or buffers.
    compile : makes an executable of a Relax module.
    warn : is told why a graph runs in PyTorch.
    """

    def __init__(
        self,
        graph_module: Any,
        static: Collection[int],
        compile: Callable[[tvm.IRModule], Executable],
        warn: Callable[[str], None],
    ) -> None:
        self._graph_module = graph_module
        self._static = tuple(sorted(static))
        self._compile = compile
        self._warn = warn
        self._made: dict[tuple[Any, ...], _Made] = {}
        self._attempts = 0
        self._failed = False
        self._lock = threading.Lock()

    def __call__(self, args: Sequence[Any]) -> Any:
        made = self._compiled(args)
        return self._graph_module(*args) if made is None else _run(made, args)

    def executables(self) -> list[Executable]:
        """Lists the executables that are compiled at present."""
        return [made.executable for made in list(self._made.values())]

    def _compiled(self, args: Sequence[Any]) -> _Made | None:
        """The compilation for these weights and numbers; None where PyTorch has to run the graph."""
        if self._failed:
            return None
        numbers = free_numbers(self._graph_module, args)
        key = (*(args[index].data_ptr() for index in self._static), *sorted(numbers.items()))
        versions = tuple(_version(args[index]) for index in self._static)
        with self._lock:
            made = self._made.get(key)
            if (
                made is not None
                and made.versions == versions
                and all(one.is_unchanged() for one in made.samples)
            ):
                return made
            if self._attempts >= MOST:
                self._warn(f"its weights or numbers changed {MOST} times; call it with the same ones")
                return None
            self._attempts += 1
            try:
                imported = import_graph(self._graph_module, args, self._static, numbers)
                executable = self._compile(imported.mod)
            except Exception as error:  # whatever it is, PyTorch can run the graph
                self._failed = True
                self._warn(f"{type(error).__name__}: {error}")
                return None
            weights = tuple(args[index].detach() for index in self._static)
            samples = tuple(map(_sample, weights))
            self._made[key] = _Made(versions, weights, samples, executable, imported.taken, imported.plan)
            return self._made[key]


def _version(tensor: Any) -> int:
    """Returns the number of writes to a tensor, as PyTorch counts them; 0 where it does not."""
    return 0 if tensor.is_inference() else int(tensor._version)


def _sample(tensor: Any) -> Sample:
    """Some elements of a tensor; none where it is on a GPU.

    PyTorch does not count what is written through ``.data``.
    """
    import torch

    if tensor.device.type != "cpu":
        return Sample.of(np.zeros(0, "uint8"), np.zeros(0, "int64"))
    memory = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy()
    return Sample.of(
        memory, sampled_bytes(tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.element_size())
    )


def sampled_bytes(shape: Sequence[int], strides: Sequence[int], offset: int, element: int) -> np.ndarray:
    """The places in memory of the bytes of elements spread over a tensor, as its strides say."""
    count = math.prod(shape)
    chosen = np.arange(0, count, max(1, -(-count // _SAMPLED)))
    first = np.full(chosen.shape, offset, "int64")
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        chosen, along = np.divmod(chosen, max(extent, 1))
        first += along * stride
    return (first[:, None] * element + np.arange(element)).reshape(-1)


def _run(made: _Made, args: Sequence[Any]) -> list[Any]:
    import torch

    given = [_shared(args[index]) for index in made.taken]
    found = iter(made.executable(*given))
    read = {value.data_ptr() for value in args if is_tensor(value)}
    results: list[Any] = []
    for kind in made.plan:
        if kind is Result.NOTHING:
            results.append(None)
            continue
        tensor = torch.from_dlpack(next(found))
        if kind is Result.NUMBER:
            results.append(tensor.item())
        else:  # what PyTorch may write to is no input's memory
            results.append(tensor.clone() if tensor.data_ptr() in read else tensor)
    return results


def _shared(tensor: Any) -> Any:
    """PyTorch's tensor as one of TVM's, of the same memory where that is plain and aligned."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if plain.data_ptr() % ALIGNMENT:
        plain = plain.clone()
    return tvm_ffi.from_dlpack(plain)
