"""One step in a file: its program, what it read and what it wrote, byte for byte; and running it again.

The file is an .npz archive: ``program`` (codec.py's bytes of a program of this step alone), ``reads`` as
``read0``, ``read1``, ... (bytes of the program's inputs and constants in their layouts), ``prior`` (what the
destination held, for a sum), ``actual``, ``expected`` and ``allowed`` (logical), ``text``, and ``library``.
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
from .physical import Tensor, read
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
    reads : what it read, by the numbers of values.
    prior : what its destination held, None where that does not count.
    """

    library: str
    program: ir.Program
    step: ir.Step
    reads: Mapping[int, Tensor]
    dst: Tensor
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
    estimate = reference(program, step, reads, prior)
    path = folder / (re.sub(r"[^\w.-]", "_", stem) + ".npz")
    arrays = {f"read{at}": reads[value].raw for at, value in enumerate(order)}
    if prior is not None:
        arrays["prior"] = _physical(prior, program.values[step.dst], ran.dst.raw)
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file,
            program=np.frombuffer(codec.encode(single), np.uint8),
            text=np.frombuffer(text.encode(), np.uint8),
            library=np.frombuffer(ran.library.encode(), np.uint8),
            actual=ran.dst.raw,
            expected=estimate.value,
            allowed=np.broadcast_to(estimate.error, estimate.value.shape),
            **arrays,
        )
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
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        program = codec.decode(arrays["program"].tobytes())
        text = arrays["text"].tobytes().decode()
        actual = arrays["actual"]
        raws = [arrays[f"read{at}"] for at in range(len(program.values) - 1)]
        step = _only_step(program)
        reads = {at: read(raw, program.values[at]) for at, raw in enumerate(raws)}
        prior = arrays.get("prior")
        out = np.zeros_like(actual) if prior is None else prior.copy()
        constants = [_tensor(raws[at], program.values[at]) for at in program.of_kind("constant")]
        arguments = [_tensor(raws[at], program.values[at]) for at in program.of_kind("input")]
        arguments.append(_tensor(out, program.values[step.dst]))
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
    dst_value = program.values[step.dst]
    before = None if prior is None else read(prior, dst_value).logical
    estimate = reference(program, step, reads, before)
    finding, _ = differ(dst_value.name, read(out, dst_value).logical, estimate)
    return Replay(text, program, finding, bool(np.array_equal(out, actual)))


def _only_step(program: ir.Program) -> ir.Step:
    """The step of a program as :func:`alone` makes it, from given values to the last one."""
    kinds = [value.kind for value in program.values]
    sound = len(program.steps) == 1 and not program.symbols
    if not sound or kinds.count("output") != 1 or kinds[-1] != "output" or "local" in kinds:
        raise ValueError("its program is not one step from inputs and constants to an output")
    if program.steps[0].dst != len(kinds) - 1:
        raise ValueError(f"the step does not write its output {program.values[-1].name}")
    return program.steps[0]


def _physical(logical: Array, value: ir.Value, like: Array) -> Array:
    """``logical`` as bytes in the layout of ``value``."""
    raw = np.zeros_like(like)
    read(raw, value).logical[...] = logical
    return raw


def _tensor(raw: Array, value: ir.Value) -> Array:
    """Bytes as the array that a region takes for ``value``: of its physical shape."""
    array = np.ascontiguousarray(raw).view(numpy_type(value.dtype))
    return array.reshape(parse_layout(value.layout).physical_shape(static_shape(value.shape)))
