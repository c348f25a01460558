"""A compiled library run on another machine: sent there with its inputs, its outputs and times sent back."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..execution import runner
from ..execution.signature import Signature
from .address import Remote
from .connection import connection

_LIBRARY, _INPUTS, _OUTPUTS = "model.so", "inputs.npz", "outputs.npz"


def measure_there(
    remote: Remote,
    library: Path,
    signature: Signature,
    inputs: Mapping[str, np.ndarray],
    repeat: int,
    number: int,
    end_to_end: bool,
) -> tuple[list[np.ndarray], runner.Timing]:
    """As :func:`tvm_mxplan.execution.runner.measure`, for the library in a file on the machine ``remote``.

    Raises
    ------
    RemoteError : the machine cannot be reached, has no tvm_mxplan, or is gone in the middle.
    InvalidInputError : inputs that do not fit, or a library that cannot be used over there.
    """
    with connection(remote) as there, tempfile.TemporaryDirectory(prefix="mxplan-") as folder:
        runner.save_outputs(Path(folder) / _INPUTS, inputs)
        there.upload(library, _LIBRARY)
        there.upload(Path(folder) / _INPUTS, _INPUTS)
        told = there.ask("run", _LIBRARY, _INPUTS, _OUTPUTS, repeat, number, int(end_to_end))
        path = Path(folder) / _OUTPUTS
        path.write_bytes(there.download(_OUTPUTS))
        found = runner.read_inputs(path)
    names = runner.output_names(signature, len(found))
    return [found[name] for name in names], runner.Timing(tuple(told))
