"""Times of steps here and in PyTorch, and opcheck of ours; needs torch."""

from __future__ import annotations

import copy
import functools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch

from tvm_mxplan import training
from tvm_mxplan.execution.threads import set_threads

from .compared_steps import Torch, compiled
from .networks import Network

Options = dict[str, Any]
POLICIES = ("cost", "blocked", "channels_last")
"""Ways to choose layouts: the default, and fixed ones that it is held against."""
_KINDS = {"convolution": 0, "deconvolution": 1, "convolution_backward_weights": 2}


def print_times(
    networks: Iterable[Network], batch: int, rounds: int, options: Options, threads: int = 1
) -> None:
    """Print the table of times, row by row."""
    torch.set_num_threads(threads)
    set_threads(threads)
    print(
        "| network | ours, ms | PyTorch nchw | channels last | ours over the better | conversions | "
        "reorders | arena over bound |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    ratios = []
    for network in networks:
        row, ratio = _timed(network, batch, rounds, options, threads)
        ratios.append(ratio)
        print(row, flush=True)
    print(_told(ratios))


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
        ours, theirs = spent[: len(steps)], spent[len(steps) :]
        ratios.append((ours[0] / min(ours[1:]), ours[0] / min(theirs)))
        cells = [f"{time:.1f}" for time in spent] + [f"{ratio:.2f}" for ratio in ratios[-1]]
        print(f"| {network.name} | {' | '.join(cells)} |", flush=True)
    for name, found in zip(("the better policy", "PyTorch's better"), zip(*ratios, strict=True), strict=True):
        print(f"over {name}: {_told(found)}")


def _timed(network: Network, batch: int, rounds: int, options: Options, threads: int) -> tuple[str, float]:
    model = network.made()
    step = compiled(network, model, batch, options)
    ours, nchw, channels = _in_turns(network, model, batch, rounds, [step], threads)
    ratio = ours / min(nchw, channels)
    cells = [f"{ours:.0f}", f"{nchw:.0f}", f"{channels:.0f}", f"{ratio:.2f}", *_facts(step)]
    return f"| {network.name} | {' | '.join(cells)} |", ratio


def _in_turns(
    network: Network,
    model: torch.nn.Module,
    batch: int,
    rounds: int,
    steps: Sequence[training.TrainingStep],
    threads: int = 1,
) -> list[float]:
    """Medians of milliseconds: of our steps, and of PyTorch's plain and in channels last."""
    clock = time.process_time if threads == 1 else time.perf_counter
    inputs, labels = network.batch(batch)
    arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
    plain, last = Torch(model, torch.float32), Torch(_channels_last(model), torch.float32)
    turned = {
        name: tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor
        for name, tensor in inputs.items()
    }
    engines: list[Callable[[], float]] = [
        *(functools.partial(step, **arrays, labels=labels.numpy()) for step in steps),
        lambda: plain.step(inputs, labels),
        lambda: last.step(turned, labels),
    ]
    losses = [engine() for engine in engines]
    *ours, nchw, channels = losses
    room = max(1e-4 * abs(nchw), abs(nchw - channels))  # deep networks amplify rounding, PyTorch's own too
    if not np.allclose(ours, nchw, rtol=0, atol=room):
        raise SystemExit(f"bench: {network.name}: first losses differ: {losses}")
    spent: list[list[float]] = [[] for _ in engines]
    for _ in range(rounds):
        for times, engine in zip(spent, engines, strict=True):
            began = clock()
            engine()
            times.append(clock() - began)
    return [float(np.median(times)) * 1e3 for times in spent]


def _told(ratios: Sequence[float]) -> str:
    return f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, largest {max(ratios):.2f}"


def _channels_last(model: torch.nn.Module) -> torch.nn.Module:
    return copy.deepcopy(model).to(memory_format=torch.channels_last)


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
