"""The files of one model at one batch: what the processes of a run hand each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tvm_mxplan.execution.runner import save_outputs
from tvm_mxplan.testing import zoo

from .engines import REFERENCE
from .process import Worker
from .worker import Spec

if TYPE_CHECKING:
    import onnx

INPUT_SEED = 1


@dataclass(frozen=True)
class Files:
    """The files of one model at one batch; all in the run's temporary directory but a model that is given."""

    directory: Path
    given: Path | None = None

    @property
    def model(self) -> Path:
        return self.given or self.directory / "model.onnx"

    @property
    def inputs(self) -> Path:
        return self.directory / "inputs.npz"

    @property
    def expected(self) -> Path:
        return self.directory / "expected.npz"

    def artifact(self, engine: str) -> Path:
        return self.directory / f"{engine}.so"

    def answer(self, engine: str) -> Path:
        return self.directory / f"answer_{engine}.npz"

    def log(self, engine: str) -> Path:
        return self.directory / f"{engine}.log"


def write_model(name: str, batch: int, files: Files) -> onnx.ModelProto:
    """Write the model and its inputs, and return the model."""
    import onnx

    model = zoo.load(name, batch)
    onnx.save(model, files.model)
    np.savez(files.inputs, **zoo.random_inputs(model, INPUT_SEED))
    return model


def write_exported(model: Path, inputs: Mapping[str, np.ndarray], directory: Path) -> Files:
    """Write the inputs of a model that has a file, which is read where it stands, weights beside it too."""
    files = Files(directory, model.resolve())
    save_outputs(files.inputs, inputs)
    return files


def write_expected(files: Files, cpus: tuple[int, ...], timeout: float) -> None:
    """Let the reference answer the inputs; raises `WorkerError` where it can't."""
    spec = Spec(REFERENCE.name, str(files.model), "", str(files.inputs), len(cpus), cpus)
    with Worker(spec, files.log(REFERENCE.name)) as worker:
        worker.ask("load", timeout, outputs=str(files.expected))


def read_arrays(path: Path) -> list[np.ndarray]:
    """The arrays of a file, in the order in which they were written."""
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]
