"""One step in a file: its program, what it read and what it wrote, byte for byte; and running it again.

The file is an .npz archive: ``program`` (codec.py's bytes of a program of this step alone), ``reads`` as
``read0``, ``read1``, ... (bytes of the program's inputs and constants in their layouts), ``prior`` (what the
destination held, for a sum), for each result ``actual0``, ``expected0`` and ``allowed0`` (logical), ...,
``text``, and ``library``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tvm_mxplan.core.element_types import numpy_type
from tvm_mxplan.core.kernel import alone
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import static_shape
from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.export.files import whole_file

from .compare import differ, reference
from .estimate import Array
from .physical import CheckedTensor, read
from .result import Finding

_NAME = "step"


@dataclass(frozen=True)
class Replay:
    """A step run again.

    Attributes
    ----------
    recorded : what was said when the file was written.
    finding : what is wrong with the new result, None if nothing is.
    same_bytes : whether the new result is the recorded one, bit for bit.
    """

    recorded: str
    program: ir.Program
    finding: Finding | None
    same_bytes: bool

    def __str__(self) -> str:
        now = "it agrees with its reference now" if self.finding is None else f"now {self.finding}"
        same = "the same bits" if self.same_bytes else "other bits"
        return f"recorded: {self.recorded}\nreplayed: {same} as recorded; {now}"


@dataclass(frozen=True)
class Observed:
    """A step that ran.

    Attributes
    ----------
    library : whose it was.
    reads, results : what it read and wrote, by the numbers of values.
    prior : what its destination held, None where that does not count.
    """

    library: str
    program: ir.Program
    step: ir.Step
    reads: Mapping[int, CheckedTensor]
    results: Mapping[int, CheckedTensor]
    prior: Array | None


def write(folder: str | os.PathLike[str], stem: str, text: str, ran: Observed) -> Path:
    """Write the file into ``folder``, which is made if it is missing; its path."""
    folder, program, step, reads, prior = Path(folder), ran.program, ran.step, ran.reads, ran.prior
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"{folder}: no folder for opcheck's files ({error.strerror or error})"
        ) from error
    single, order = alone(program, step)
    estimates = reference(program, step, reads, prior)
    path = folder / (re.sub(r"[^\w.-]", "_", stem) + ".npz")
    arrays = {f"read{at}": reads[value].raw for at, value in enumerate(order)}
    if prior is not None:
        arrays["prior"] = _physical(prior, program.values[step.dst], ran.results[step.dst].raw)
    for at, value in enumerate(step.results):
        estimate = estimates[value]
        arrays[f"actual{at}"] = ran.results[value].raw
        arrays[f"expected{at}"] = estimate.value
        arrays[f"allowed{at}"] = np.broadcast_to(estimate.error, estimate.value.shape)
    texts = {"program": codec.encode(single), "text": text.encode(), "library": ran.library.encode()}
    arrays |= {name: np.frombuffer(one, np.uint8) for name, one in texts.items()}
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # its stub's allow_pickle
    return path


def replay(path: str | os.PathLike[str]) -> Replay:
    """Run the step of a file again and compare.

    A concatenation that was done without copies is done with copies here.

    Raises
    ------
    InvalidInputError : the file is missing, damaged or none of these.
    """
    from tvm_mxplan.byoc import registry
    from tvm_mxplan.byoc.arrays import tensor_of

    path = Path(path)
    if not path.exists():
        raise InvalidInputError(f"{path}: no such file; expected an .npz file that opcheck wrote")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        program = codec.decode(arrays["program"].tobytes())
        text = arrays["text"].tobytes().decode()
        step = _only_step(program)
        actual = [arrays[f"actual{at}"] for at in range(len(step.results))]
        raws = [arrays[f"read{at}"] for at in range(len(program.values) - len(actual))]
        reads = {at: read(raw, program.values[at]) for at, raw in enumerate(raws)}
        prior = arrays.get("prior")
        outs = [np.zeros_like(one) for one in actual]
        if prior is not None:
            outs[step.results.index(step.dst)] = prior.copy()
        constants = [_tensor(raws[at], program.values[at]) for at in program.of_kind("constant")]
        arguments = [_tensor(raws[at], program.values[at]) for at in program.of_kind("input")]
        arguments += [
            _tensor(out, program.values[value]) for out, value in zip(outs, step.results, strict=True)
        ]
        engine = registry.engine(arrays["library"].tobytes().decode())
        engine.load()
        tensors = [tensor_of(array) for array in constants]
        module = engine.create_module(_NAME, codec.encode(program), tensors)
        module["mxplan.prepare"]()  # the runtime's rules: shapes, types, memory
    except UnsupportedError:  # of a sound file, on another machine
        raise
    except Exception as error:
        raise InvalidInputError(f"{path}: not a file of opcheck's, or damaged ({error})") from error
    module[_NAME](*map(tensor_of, arguments))
    before = None if prior is None else read(prior, program.values[step.dst]).logical
    estimates = reference(program, step, reads, before)
    found = []
    for out, number in zip(outs, step.results, strict=True):
        value = program.values[number]
        found.append(differ(value.name, read(out, value).logical, estimates[number])[0])
    finding = next((one for one in found if one is not None), None)
    same = all(np.array_equal(out, one) for out, one in zip(outs, actual, strict=True))
    return Replay(text, program, finding, same)


def _only_step(program: ir.Program) -> ir.Step:
    """The step of a program as :func:`alone` makes it, from given values to the last ones."""
    kinds = [value.kind for value in program.values]
    if len(program.steps) != 1 or program.symbols:
        raise ValueError("its program is not one step of known shapes")
    step = program.steps[0]
    given = len(kinds) - len(step.results)
    if "local" in kinds or "output" in kinds[:given] or set(kinds[given:]) != {"output"}:
        raise ValueError("its program is not one step from inputs and constants to outputs")
    if list(step.results) != list(range(given, len(kinds))):
        raise ValueError(f"the step does not write its output {program.values[-1].name}")
    return step


def _physical(logical: Array, value: ir.Value, like: Array) -> Array:
    """``logical`` as bytes in the layout of ``value``."""
    raw = np.zeros_like(like)
    read(raw, value).logical[...] = logical
    return raw


def _tensor(raw: Array, value: ir.Value) -> Array:
    """Bytes as the array that a region takes for ``value``: of its physical shape."""
    array = np.ascontiguousarray(raw).view(numpy_type(value.dtype))
    return array.reshape(parse_layout(value.layout).physical_shape(static_shape(value.shape)))
