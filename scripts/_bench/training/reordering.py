"""Reorders as a share of a step, by oneDNN's own clock; needs torch.

Each network has a process of its own, in which oneDNN writes down every primitive that it runs and how long
(``ONEDNN_VERBOSE``).  Conversions of weights, gradients and activations count alike; what kernels of our own
turn does not pass oneDNN, and is not counted.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest import mock

import torch

from tvm_mxplan.execution.threads import set_threads

from .compared_steps import chosen, compiled
from .networks import Network

_LOUD = {"ONEDNN_VERBOSE": "profile_exec"}
_KIND = "reorder"


def print_reorders(
    networks: Iterable[Network],
    size: int | None,
    batch: int,
    rounds: int,
    threads: int,
    options: dict[str, Any],
) -> None:
    """Print the table, row by row: means of a step."""
    print("| network | step, ms | reorders | reorders, ms | share |\n| --- | ---: | ---: | ---: | ---: |")
    for network in networks:
        fresh = multiprocessing.get_context("spawn")
        # A process reads its environment as it starts.
        with mock.patch.dict(os.environ, _LOUD), concurrent.futures.ProcessPoolExecutor(1, fresh) as pool:
            task = pool.submit(measured, network.name, size, batch, rounds, threads, options)
            step, count, spent = task.result()
        print(
            f"| {network.name} | {step:.1f} | {count:g} | {spent:.2f} | {spent / step:.2%} |",
            flush=True,
        )


def measured(
    name: str, size: int | None, batch: int, rounds: int, threads: int, options: dict[str, Any]
) -> tuple[float, float, float]:
    """Milliseconds of a step, reorders in it and the milliseconds that they take."""
    torch.set_num_threads(threads)
    set_threads(threads)
    with _caught() as so_far:
        network = chosen([name], size)[0]
        step = compiled(network, network.made(), batch, options)
        inputs, labels = network.batch(batch)
        arrays = {key: tensor.numpy() for key, tensor in inputs.items()}
        step(**arrays, labels=labels.numpy())
        before = len(so_far())
        began = time.perf_counter()
        for _ in range(rounds):
            step(**arrays, labels=labels.numpy())
        spent = time.perf_counter() - began
        every = executions(so_far()[before:])
    reorders = [ms for kind, ms in every if kind == _KIND]
    if not every:
        raise SystemExit(f"bench: {name}: oneDNN wrote nothing down")
    return 1e3 * spent / rounds, len(reorders) / rounds, sum(reorders) / rounds


@contextlib.contextmanager
def _caught() -> Iterator[Callable[[], str]]:
    """Catches what libraries print, instead of the terminal; what is yielded gives it so far."""
    system = ctypes.CDLL(None)  # whose buffer they write to
    with tempfile.TemporaryFile() as told:

        def so_far() -> str:
            system.fflush(None)
            told.seek(0)
            return told.read().decode()

        system.fflush(None)
        kept = os.dup(1)
        os.dup2(told.fileno(), 1)
        try:
            yield so_far
        finally:
            system.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)


def executions(told: str) -> list[tuple[str, float]]:
    """The kinds of primitives and their milliseconds, as oneDNN's log has them."""
    found = []
    for line in told.splitlines():
        fields = line.split(",")
        if fields[0] == "onednn_verbose" and "exec" in fields[:4]:
            found.append((fields[fields.index("exec") + 2], float(fields[-1])))
    return found
