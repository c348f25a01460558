"""The memory that a step adds to a process, here and in PyTorch; needs torch.

Each engine has a process of its own.  The model, the batch and, here, the compiled step stand; what is free
is given back to the system.  Three steps run, and the most that is resident in that time counts, less what
was resident before: activations, gradients, momenta, and weights that are written anew.  Beside it stands,
for our step, the arena alone.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import gc
import multiprocessing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from tvm_mxplan.execution.threads import set_threads

from .compared_steps import chosen, compiled
from .engines import ENGINES
from .networks import Network

OURS = "ours"
STEPS = 3


def print_peaks(
    networks: Iterable[Network], size: int | None, batch: int, options: dict[str, Any], engines: Sequence[str]
) -> None:
    """Print the table of memory in megabytes, row by row."""
    columns = " | ".join(engines)
    print(
        f"| network | arena, MB | ours, MB | {columns} | ours over the least |\n"
        f"| --- | {'---: | ' * (len(engines) + 3)}".rstrip()
    )
    for network in networks:
        arena, ours = _apart(network.name, size, batch, options, OURS)
        theirs = [_apart(network.name, size, batch, options, engine)[1] for engine in engines]
        cells = " | ".join(f"{nbytes / 1e6:,.0f}" for nbytes in (arena, ours, *theirs))
        print(f"| {network.name} | {cells} | {ours / min(theirs):.2f} |", flush=True)


def _apart(name: str, size: int | None, batch: int, options: dict[str, Any], engine: str) -> tuple[int, int]:
    """The result of ``peak`` in a process of its own."""
    fresh = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=fresh) as pool:
        return pool.submit(peak, name, size, batch, options, engine).result()


def peak(name: str, size: int | None, batch: int, options: dict[str, Any], engine: str) -> tuple[int, int]:
    """Bytes of the arena, none for PyTorch, and bytes that steps add to this process."""
    torch.set_num_threads(1)
    set_threads(1)
    network = chosen([name], size)[0]
    model = network.made()
    inputs, labels = network.batch(batch)
    arena = 0
    if engine == OURS:
        step = compiled(network, model, batch, options)
        arena = step.report.memory[-1].height
        arrays = {key: tensor.numpy() for key, tensor in inputs.items()}

        def call() -> float:
            return step(**arrays, labels=labels.numpy())
    else:
        call = ENGINES[engine](model, inputs, labels)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # begins the process's high-water mark anew
    before = _resident("VmRSS")
    for _ in range(STEPS):
        call()
    return arena, _resident("VmHWM") - before


def _resident(row: str) -> int:
    """Bytes of a row of this process's status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{row}:"))
