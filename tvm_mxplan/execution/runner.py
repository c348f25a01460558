"""Runs a compiled model for its numbers or its times: inputs made up or from a file, outputs into a file.

inputs = fill_inputs(ex.signature, "random", seed=0)
outputs, timing = measure(ex, inputs, repeat=20)
print(timing)
"""

from __future__ import annotations

import os
import statistics
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidInputError, UnsupportedError
from ..export.files import check_destination, whole_file
from .executable import Executable
from .machine import tensor_of
from .signature import Port, Signature

FILL_MODES = ("random", "zeros", "ones")


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one call, by repetition."""

    milliseconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.milliseconds)

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.milliseconds)

    def __str__(self) -> str:
        figures = (self.mean, self.median, max(self.milliseconds), min(self.milliseconds), self.std)
        titles = [f"{name} (ms)".center(13) for name in ("mean", "median", "max", "min", "std")]
        row = "".join(f"{figure:.4f}".center(13) for figure in figures)
        return f"Execution time summary:\n{''.join(titles)}\n{row}"


def read_inputs(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name; InvalidInputError if it is missing, truncated or none.

    Files may have the bytes of numbers in either order; arrays have them in this machine's.
    """
    path = Path(path)
    if not path.exists():
        raise InvalidInputError(f"{path}: no such file; expected an .npz file with the inputs")
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise TypeError("it holds one array without a name")
        with archive:
            return {name: _in_our_order(archive[name]) for name in archive.files}
    except Exception as error:
        raise InvalidInputError(f"{path}: not an .npz file of plain arrays or truncated ({error})") from error


def _in_our_order(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def fill_inputs(
    signature: Signature,
    mode: str = "random",
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    given: Mapping[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Inputs by name: those ``given``, and made-up ones for the rest.

    Parameters
    ----------
    mode : ``random`` (uniform, from 0 to 1 or to 127 for integers), ``zeros`` or ``ones``.
    shapes : by name, for inputs with symbolic dimensions; a symbol that nothing fixes is 1.

    Raises
    ------
    InvalidInputError : an unknown mode or name, or an input whose shape cannot be known.
    """
    if mode not in FILL_MODES:
        raise InvalidInputError(f"fill mode {mode!r}; expected one of {', '.join(FILL_MODES)}")
    given, shapes = dict(given or {}), dict(shapes or {})
    names = [port.name for port in signature.inputs]
    for name in [*shapes, *given]:
        if name not in names:
            raise InvalidInputError(f"no input {name!r}; the inputs are {', '.join(names)}")
    shapes |= {name: array.shape for name, array in given.items()}
    symbols: dict[str, int] = {}
    for port in signature.inputs:
        for dim, actual in zip(port.shape, shapes.get(port.name, ()), strict=False):
            if isinstance(dim, str):
                symbols.setdefault(dim, actual)
    random = np.random.default_rng(seed)
    inputs = {}
    for port in signature.inputs:
        if port.name in given:
            inputs[port.name] = given[port.name]
        else:
            inputs[port.name] = _fill(port, _shape(port, shapes.get(port.name), symbols), mode, random)
    return inputs


def measure(
    ex: Executable,
    inputs: Mapping[str, Any],
    repeat: int = 1,
    number: int = 1,
    end_to_end: bool = False,
) -> tuple[list[np.ndarray], Timing]:
    """Call once for the outputs, then ``repeat`` times ``number`` calls for the time.

    ``end_to_end`` counts the copies from numpy and back too.
    """
    ex.signature.bind((), inputs)
    bound = {name: tensor_of(value) for name, value in inputs.items()}
    outputs = [output.numpy() for output in ex(**bound)]
    milliseconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(number):
            if end_to_end:
                _ = [output.numpy() for output in ex(**inputs)]
            else:
                ex(**bound)
        milliseconds.append(1e3 * (time.perf_counter() - start) / number)
    return outputs, Timing(tuple(milliseconds))


def output_names(signature: Signature, count: int) -> list[str]:
    """Names for ``count`` outputs, also of a library that carries none."""
    names = [port.name for port in signature.outputs]
    return names if len(names) == count else [f"output{i}" for i in range(count)]


def save_outputs(path: str | os.PathLike[str], outputs: Mapping[str, np.ndarray]) -> None:
    """Write an .npz file; it appears whole or not at all."""
    path = check_destination(path, ".npz")
    with whole_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, output in outputs.items():  # not savez, which has argument names of its own
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(output), allow_pickle=False)


def top_elements(output: np.ndarray, count: int) -> list[tuple[int, float]]:
    """The largest elements of an output with their flat indices, largest first."""
    flat = output.reshape(-1)
    order = np.argsort(-flat.astype(np.float64), kind="stable")[:count]
    return [(int(index), float(flat[index])) for index in order]


def _shape(port: Port, stated: Sequence[int] | None, symbols: Mapping[str, int]) -> tuple[int, ...]:
    if stated is not None:
        return tuple(stated)
    dims = [dim if isinstance(dim, int) else symbols.get(dim, 1) for dim in port.shape]
    if not port.dtype or any(isinstance(dim, str) and not dim.isidentifier() for dim in port.shape):
        raise InvalidInputError(f"input {port.name!r}: its shape is not known; state it, or give the input")
    return tuple(dims)


def _fill(port: Port, shape: tuple[int, ...], mode: str, random: np.random.Generator) -> np.ndarray:
    try:
        dtype = np.dtype(port.dtype or "float32")
    except TypeError:
        raise UnsupportedError(f"input {port}: made-up values are of numpy's types; give the input") from None
    if mode != "random":
        return np.full(shape, mode == "ones", dtype)
    if np.issubdtype(dtype, np.floating):
        return random.random(shape).astype(dtype)
    return random.integers(0, 2 if dtype.kind == "b" else 128, shape).astype(dtype)
