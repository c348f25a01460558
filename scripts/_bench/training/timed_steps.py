"""Times of steps here and in PyTorch, and opcheck of ours; needs torch."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tvm_mxplan import training
from tvm_mxplan.execution.threads import set_threads

from .compared_steps import compiled
from .engines import ENGINES, LAYOUTS, Step
from .networks import Network

Options = dict[str, Any]
POLICIES = ("cost", "blocked", "channels_last")
"""Ways to choose layouts: the default, and fixed ones that it is held against."""
_KINDS = {"convolution": 0, "deconvolution": 1, "convolution_backward_weights": 2}


def print_times(
    networks: Iterable[Network],
    batch: int,
    rounds: int,
    options: Options,
    threads: int = 1,
    engines: Sequence[str] = LAYOUTS,
) -> None:
    """Print the table of times, row by row; where an engine of PyTorch fails a dash, and why below."""
    torch.set_num_threads(threads)
    set_threads(threads)
    columns = " | ".join(f"PyTorch {engine}" for engine in engines)
    print(
        f"| network | ours, ms | {columns} | ours over the best | conversions | reorders | arena over bound |"
        f"\n| --- | {'--- | ' * (len(engines) + 5)}".rstrip()
    )
    ratios, refused = [], []
    for network in networks:
        model = network.made()
        step = compiled(network, model, batch, options)
        spent = _in_turns(network, model, batch, rounds, [step], threads, engines)
        ours, theirs = spent.ours[0], spent.theirs.values()
        ratio = ours / min(time for time in theirs if time is not None)
        ratios.append(ratio)
        refused += [f"{network.name}, {engine}: {reason}" for engine, reason in spent.refused.items()]
        times = ["-" if time is None else f"{time:.0f}" for time in (ours, *theirs)]
        print(f"| {network.name} | {' | '.join([*times, f'{ratio:.2f}', *_facts(step)])} |", flush=True)
    print("\n".join([_told(ratios), *refused]))


def print_checks(networks: Iterable[Network], batch: int) -> None:
    """Print the table of opchecks, row by row."""
    print("| network | loss | steps of regions checked |\n| --- | --- | --- |")
    for network in networks:
        print(_checked(network, batch), flush=True)


def _checked(network: Network, batch: int) -> str:
    """A step with every step of a region worked out again, which raises where one differs."""
    step = compiled(network, network.made(), batch, options={"opcheck": True})
    inputs, labels = network.batch(batch)
    loss = step(**{name: tensor.numpy() for name, tensor in inputs.items()}, labels=labels.numpy())
    count = sum(len(region.steps) for region in step.report.regions)
    return f"| {network.name} | {loss:.4f} | {count}: PASS |"


def print_budgets(networks: Iterable[Network], batch: int, rounds: int, options: Options) -> None:
    """Print what steps within a share of their arenas cost, row by row."""
    print(
        "| network | arena | within the budget | estimated time over that without | measured | run again |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    for network in networks:
        model = network.made()
        inputs, labels = network.batch(batch)
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        whole_arena = {**options, "memory_budget": None}
        steps = [compiled(network, model, batch, given) for given in (whole_arena, options)]
        told = steps[1].report.recomputation
        losses = [step(**arrays, labels=labels.numpy()) for step in steps]
        if told is None or not np.allclose(losses, losses[0], rtol=1e-5):
            raise SystemExit(f"bench: {network.name}: nothing runs again, or losses differ: {losses}")
        spent: list[list[float]] = [[], []]
        for _ in range(rounds):
            for times, step in zip(spent, steps, strict=True):
                began = time.process_time()
                step(**arrays, labels=labels.numpy())
                times.append(time.process_time() - began)
        whole, small = (float(np.median(times)) for times in spent)
        counted = sorted(told.operators.items())
        kinds = ", ".join(f"{count} {kind.split('.')[-1]}" for kind, count in counted)
        heights = f"{told.before:,} | {told.after:,} ({100 * told.after / told.before:.0f} %)"
        print(
            f"| {network.name} | {heights} | {told.factor:.2f} | {small / whole:.2f} | {kinds} |", flush=True
        )


def print_layouts(networks: Iterable[Network], batch: int, rounds: int, options: Options) -> None:
    """Print the table of fixed policies of layouts beside the choice by cost, row by row."""
    torch.set_num_threads(1)
    columns = " | ".join(f"{policy}, ms" for policy in POLICIES)
    print(
        f"| network | {columns} | PyTorch nchw | channels last | cost over the better policy | "
        f"over PyTorch's better |\n| --- | {'---: | ' * (len(POLICIES) + 4)}".rstrip()
    )
    ratios = []
    for network in networks:
        model = network.made()
        steps = [compiled(network, model, batch, {**options, "layouts": policy}) for policy in POLICIES]
        spent = _in_turns(network, model, batch, rounds, steps)
        ours, theirs = spent.ours, [time for time in spent.theirs.values() if time is not None]
        ratios.append((ours[0] / min(ours[1:]), ours[0] / min(theirs)))
        cells = [f"{time:.1f}" for time in (*ours, *theirs)] + [f"{ratio:.2f}" for ratio in ratios[-1]]
        print(f"| {network.name} | {' | '.join(cells)} |", flush=True)
    for name, found in zip(("the better policy", "PyTorch's better"), zip(*ratios, strict=True), strict=True):
        print(f"over {name}: {_told(found)}")


@dataclass(frozen=True)
class _Spent:
    """Medians of milliseconds.

    Attributes
    ----------
    ours : of our steps.
    theirs : of PyTorch's engines; None where one failed.
    refused : why it did, by its name.
    """

    ours: list[float]
    theirs: dict[str, float | None]
    refused: dict[str, str]


def _in_turns(
    network: Network,
    model: torch.nn.Module,
    batch: int,
    rounds: int,
    steps: Sequence[training.TrainingStep],
    threads: int = 1,
    engines: Sequence[str] = LAYOUTS,
) -> _Spent:
    """Our steps and PyTorch's engines in turns, after their first losses have been compared."""
    clock = time.process_time if threads == 1 else time.perf_counter
    inputs, labels = network.batch(batch)
    arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
    ours = [functools.partial(step, **arrays, labels=labels.numpy()) for step in steps]
    theirs: dict[str, Step] = {}
    refused: dict[str, str] = {}
    losses = [call() for call in ours]
    wanted: dict[str, float] = {}
    for engine in engines:
        try:
            call = ENGINES[engine](model, inputs, labels)
            wanted[engine] = call()
            theirs[engine] = call
        except Exception as error:
            if engine in LAYOUTS:
                raise
            lines = str(error).strip().splitlines() or [""]
            refused[engine] = f"{type(error).__name__}: {lines[0]}"
    plain, *others = wanted.values()
    # Deep networks amplify rounding, PyTorch's own too.
    room = max([1e-4 * abs(plain), *(abs(plain - other) for other in others)])
    if not np.allclose(losses, plain, rtol=0, atol=room):
        raise SystemExit(f"bench: {network.name}: first losses differ: {losses}, {wanted}")
    calls = [*ours, *theirs.values()]
    spent: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for times, call in zip(spent, calls, strict=True):
            began = clock()
            call()
            times.append(clock() - began)
    medians = [float(np.median(times)) * 1e3 for times in spent]
    found = dict(zip(theirs, medians[len(ours) :], strict=True))
    return _Spent(medians[: len(ours)], {engine: found.get(engine) for engine in engines}, refused)


def _told(ratios: Sequence[float]) -> str:
    return f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, largest {max(ratios):.2f}"


def _facts(step: training.TrainingStep) -> list[str]:
    report = step.report
    kinds = {one.name: one.kind for region in report.regions for one in region.steps}
    counts = Counter(_KINDS[kinds[name]] for name in report.converting)
    reorders = sum(len(region.reorders) for region in report.regions)
    whole = report.memory[-1]
    return [
        " / ".join(str(counts[at]) for at in range(3)),
        str(reorders),
        f"{whole.height / max(1, whole.lower_bound):.3f}",
    ]
