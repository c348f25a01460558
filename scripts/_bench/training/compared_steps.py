"""Steps of networks here and in PyTorch, and what they differ by; needs torch."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Mapping

import numpy as np
import torch

from tvm_mxplan import training
from tvm_mxplan.errors import MxplanError

from .networks import NETWORKS, NINE, Network

RATE, MOMENTUM, DECAY = 1e-3, 0.9, 1e-4
_SMALL_NORM = 1e-5


class Torch:
    """PyTorch's side of a comparison."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype) -> None:
        self.model, self.dtype = copy.deepcopy(model).to(dtype), dtype
        self.optimizer = torch.optim.SGD(self.model.parameters(), RATE, MOMENTUM, weight_decay=DECAY)

    def step(self, inputs: Mapping[str, torch.Tensor], labels: torch.Tensor) -> float:
        """The loss of a step, which changes the weights."""
        given = {name: x.to(self.dtype) if x.is_floating_point() else x for name, x in inputs.items()}
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(**given), labels)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def gradients(self) -> dict[str, np.ndarray]:
        """The gradients of the last step."""
        rows = self.model.named_parameters()
        return {name: row.grad.numpy().copy() for name, row in rows if row.grad is not None}

    def state(self) -> dict[str, np.ndarray]:
        """Weights and running statistics."""
        rows = self.model.state_dict().items()
        return {name: row.numpy().copy() for name, row in rows if row.is_floating_point()}


OPTIONS = {"cache": "disabled", "verify": "off"}


def compiled(
    network: Network,
    model: torch.nn.Module,
    batch: int,
    options: Mapping[str, object] | None = None,
    **settings: object,
) -> training.TrainingStep:
    """Our side: the step of the program that PyTorch exports in training mode."""
    inputs, _ = network.batch(batch)
    with torch.no_grad():
        program = torch.export.export(model, (), dict(inputs), strict=False)
    sgd = training.SGD(RATE, MOMENTUM, weight_decay=DECAY)
    every = {**OPTIONS, **(options or {})}
    return training.compile(program, "softmax_cross_entropy", sgd, options=every, **settings)


def furthest(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> tuple[float, str]:
    """The largest relative difference of a tensor, and its name."""
    norms = {name: float(np.linalg.norm(wanted[name].astype("float64"))) for name in found}
    least = _SMALL_NORM * max(norms.values())
    rows = (
        (float(np.linalg.norm(found[name] - wanted[name].astype("float64"))) / max(norms[name], least), name)
        for name in found
    )
    return max(rows)


def compared(network: Network, batch: int, steps: int, options: Mapping[str, object]) -> str:
    """A row of the table."""
    model = network.made()
    began = time.perf_counter()
    step = compiled(network, model, batch, options, keep_gradients=True)
    seconds = time.perf_counter() - began
    single, double = Torch(model, torch.float32), Torch(model, torch.float64)
    torch.manual_seed(1)
    losses, rounding = [], []
    cells: list[str] = []
    for number in range(steps):
        inputs, labels = network.batch(batch)
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        ours = step(**arrays, labels=labels.numpy())
        theirs, exact = single.step(inputs, labels), double.step(inputs, labels)
        losses.append(abs(ours - theirs) / abs(theirs))
        rounding.append(abs(theirs - exact) / abs(exact))
        if number == 0:
            cells += _cells(step.gradients, single.gradients(), double.gradients())
        if number in (0, steps - 1):
            kept = step.state_dict()["model"]
            cells += _cells(kept, single.state(), double.state())
    first = [f"{losses[0]:.0e}", f"{max(losses):.0e} ({max(rounding):.0e})"]
    share = f"{100 * step.report.offloaded:.0f} %" if step.report.multiply_adds else "-"
    return f"| {network.name} | {' | '.join([*first, *cells])} | {share} | {winograd(step)} | {seconds:.0f} |"


def print_gradients(network: Network, batch: int, options: Mapping[str, object]) -> None:
    """Print how far each gradient of the first step is from float64's, ours and PyTorch's in float32."""
    model = network.made()
    step = compiled(network, model, batch, options, keep_gradients=True)
    sides = [Torch(model, dtype) for dtype in (torch.float32, torch.float64)]
    torch.manual_seed(1)
    inputs, labels = network.batch(batch)
    step(**{name: tensor.numpy() for name, tensor in inputs.items()}, labels=labels.numpy())
    for side in sides:
        side.step(inputs, labels)
    single, double = (side.gradients() for side in sides)
    print(f"{network.name}, {winograd(step)}\n| gradient | ours | PyTorch |\n| --- | --- | --- |")
    for name, exact in double.items():
        errors = (furthest({name: one[name]}, {name: exact})[0] for one in (step.gradients, single))
        print(f"| {name} | {' | '.join(f'{error:.0e}' for error in errors)} |", flush=True)


def winograd(step: training.TrainingStep) -> str:
    """The number of convolutions and data gradients by Winograd's algorithm, for each of its tiles."""
    names = [one.implementation for region in step.report.regions for one in region.steps]
    counts = [sum(f"winograd_{tile}" in name for name in names) for tile in ("f2", "f4")]
    return f"{counts[1]} F4, {counts[0]} F2"


def _cells(
    found: Mapping[str, np.ndarray], single: Mapping[str, np.ndarray], double: Mapping[str, np.ndarray]
) -> list[str]:
    known = {name: array for name, array in found.items() if name in single}
    worst, name = furthest(known, single)
    theirs, _ = furthest({name: single[name] for name in known}, double)
    return [f"{worst:.0e} ({theirs:.0e}) {name if worst > 1e-4 else ''}".rstrip()]


def printed(
    networks: Iterable[Network], batch: int, steps: int, options: Mapping[str, object] | None = None
) -> None:
    """Print the table, row by row."""
    last = f"weights after {steps}"
    print(
        f"| network | loss, first | worst of {steps} | gradients | weights after 1 | {last} "
        "| in libraries | Winograd | seconds |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for network in networks:
        try:
            print(compared(network, batch, steps, options or {}), flush=True)
        except MxplanError as error:
            print(f"| {network.name} | {error} |", flush=True)
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            print(f"| {network.name} | {type(error).__name__}: {lines[-1]} |", flush=True)


def chosen(names: Iterable[str], size: int | None = None) -> list[Network]:
    """The networks of some names, ``nine`` for the published ones, all without any; for images of a size."""
    found = [one for name in names for one in ([n.name for n in NINE] if name == "nine" else [name])]
    for name in found:
        if name not in NETWORKS:
            raise SystemExit(f"bench: there is no network {name!r}; there are {', '.join(NETWORKS)}")
    return [NETWORKS[name].of_size(size) for name in found or NETWORKS]
