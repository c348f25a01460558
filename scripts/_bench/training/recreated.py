"""Images a second with primitives held, or with backward ones made again in each step; needs torch.

held         the step as it runs
re-created   before each step, all primitives of the regions that have gradients: oneDNN may keep them
bare         the same with oneDNN's own cache off

Making them is `library.describe`, which also reads the program and writes down what came of it; that counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from tvm_mxplan import training
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import codec
from tvm_mxplan.report.inspection import decoded_programs

from .compared_steps import compiled
from .networks import Network

WAYS = {"held": None, "re-created": (0, 4096), "bare": (0, 0)}
"""Entries of our cache and of oneDNN's, or None where nothing is made again."""


def print_recreated(networks: Iterable[Network], batch: int, rounds: int, options: dict[str, Any]) -> None:
    """Print the table, row by row."""
    torch.set_num_threads(1)
    print(
        "| network | backward regions' steps | held, images/s | re-created | without oneDNN's cache | "
        "held over re-created | held over without |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for network in networks:
        step = compiled(network, network.made(), batch, options)
        inputs, labels = network.batch(batch)
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        count, make = _maker(step)
        step(**arrays, labels=labels.numpy())  # memory is new in the first
        spent: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, capacities in WAYS.items():
                before = make if capacities else None
                if capacities:
                    library.set_cache_capacity("primitives", capacities[0], 0)
                    library.runtime("set_library_cache", capacities[1])
                    make()
                began = time.process_time()
                if before:
                    before()
                step(**arrays, labels=labels.numpy())
                spent[way].append(time.process_time() - began)
        held, again, bare = (float(np.median(spent[way])) for way in WAYS)
        rates = " | ".join(f"{batch / one:.1f}" for one in (held, again, bare))
        print(f"| {network.name} | {count} | {rates} | {again / held:.2f} | {bare / held:.2f} |", flush=True)


def _maker(step: training.TrainingStep) -> tuple[int, Callable[[], None]]:
    """The number of steps in regions with gradients, and a function that makes their primitives."""
    programs = [
        program
        for program in decoded_programs(step.executable.module)
        if any("backward" in one.kind for one in program.steps)
    ]
    if not programs:
        raise SystemExit("bench: no region has gradients")
    describe = library.runtime.function("describe")
    encoded = [codec.encode(program) for program in programs]

    def make() -> None:
        for program in encoded:
            describe(program, [])

    return sum(len(program.steps) for program in programs), make
