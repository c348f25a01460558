"""The networks of today for scripts/bench: exported from PyTorch once and kept, with inputs for them.

Exports take minutes and the packages of the extra ``torch_models``, which may be another Python's.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _exports.networks import Network
from _exports.tables import ZOOS, file_of, table_of

from tvm_mxplan import environment

_SEED = 1
_SCRIPTS = Path(__file__).resolve().parents[2]
NAMES = {zoo: tuple(network.label for network in networks(1)) for zoo, (networks, _) in ZOOS.items()}
BATCHES = {zoo: batches for zoo, (_, batches) in ZOOS.items()}
"""Batches that are exported."""


class NotExported(Exception):
    """A network that PyTorch's exporter does not give, and why."""


@dataclass(frozen=True)
class Exports:
    """A folder of exported networks, and what fills it."""

    folder: Path
    python: str
    exporter: str = "new"
    zoo: str = "modern"

    def model(self, name: str, batch: int) -> Path:
        """The file of a network, exported now where it is missing; raises `NotExported`."""
        at, table = NAMES[self.zoo].index(name), table_of(self.zoo, batch)
        folder = self.folder / table
        path = folder / file_of(_networks(self.zoo, batch)[at], self.exporter)
        if path.exists():
            return path
        folder.mkdir(parents=True, exist_ok=True)
        command = [self.python, "-m", "_exports.export", table, str(folder), f"{at}:{self.exporter}"]
        settings = {**os.environ, "PYTHONPATH": str(_SCRIPTS)}
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not path.exists():
            why = said[0]["failure"] if said else (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise NotExported(
                f"{name} at batch {batch} by {self.python}: {why}; install the extra [torch_models]"
            )
        return path


def default_folder() -> Path:
    """In the cache folder; beside the checkout where there is none."""
    return (environment.cache_folder() or _SCRIPTS.parent) / "zoo"


def inputs(name: str, batch: int, zoo: str = "modern") -> dict[str, np.ndarray]:
    """Random inputs of a network: noise, tokens, and masks that leave one token out."""
    network = _networks(zoo, batch)[NAMES[zoo].index(name)]
    random = np.random.default_rng(_SEED)
    return {of: _array(network, of, shape, random) for of, shape in network.inputs.items()}


def _networks(zoo: str, batch: int) -> tuple[Network, ...]:
    networks, _ = ZOOS[zoo]
    return networks(batch)


def _array(network: Network, name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    if name == "ids":
        return random.integers(1, network.tokens, shape)
    if name == "mask":
        mask = np.ones(shape, "int64")
        mask[:, shape[1] // 2] = 0
        return mask
    return random.standard_normal(shape).astype("float32")
