"""Runs over scikit-learn's digits here and in PyTorch, side by side; needs torch and scikit-learn."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from tvm_mxplan import training
from tvm_mxplan.training.curves import CurvePanel, draw

RATE, MOMENTUM, DECAY = 0.02, 0.9, 5e-4


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        straight = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if straight else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet20() -> nn.Module:
    blocks = [Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1), Block(16, 32, 2), Block(32, 32, 1)]
    blocks += [Block(32, 32, 1), Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1)]
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def vgg() -> nn.Module:
    rows: list[nn.Module] = []
    inputs = 3
    for width in (32, 32, 0, 64, 64, 0, 128, 128, 0, 128, 128, 0):
        if not width:
            rows.append(nn.MaxPool2d(2))
            continue
        rows += [nn.Conv2d(inputs, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*rows, nn.Flatten(), nn.Linear(128 * 4, 10))


NETWORKS: dict[str, Callable[[], nn.Module]] = {"resnet20": resnet20, "vgg": vgg}


def digits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images and labels to train on, and those that are held back."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = np.repeat(np.kron(data.images / 8 - 1, np.ones((1, 4, 4)))[:, None], 3, axis=1)
    order = np.random.default_rng(seed).permutation(len(images))
    images, labels = images[order].astype("float32"), data.target[order].astype("int64")
    return images[360:], labels[360:], images[:360], labels[:360]


def trained(name: str, seed: int, epochs: int, batch: int) -> tuple[list[float], list[float]]:
    """The validation accuracy in percent after each epoch, here and in PyTorch."""
    torch.manual_seed(seed)
    model = NETWORKS[name]().train()
    images, labels, held, wanted = digits(seed)
    with torch.no_grad():
        program = torch.export.export(model, (torch.zeros(batch, 3, 32, 32),), strict=False)
    rate = training.Cosine(RATE, epochs * (len(images) // batch))
    sgd = training.SGD(rate, MOMENTUM, weight_decay=DECAY)
    step = training.compile(program, "softmax_cross_entropy", sgd)
    theirs = copy.deepcopy(model)
    optimizer = torch.optim.SGD(theirs.parameters(), RATE, MOMENTUM, weight_decay=DECAY)
    random = np.random.default_rng(seed)
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(epochs):
        theirs.train()
        order = random.permutation(len(images))
        for begin in range(0, len(images) - batch + 1, batch):
            at = order[begin : begin + batch]
            for group in optimizer.param_groups:
                group["lr"] = step.learning_rate
            step(images[at], labels[at])
            optimizer.zero_grad()
            outputs = theirs(torch.from_numpy(images[at]))
            nn.functional.cross_entropy(outputs, torch.from_numpy(labels[at])).backward()
            optimizer.step()
        theirs.eval()
        whole = range(0, len(held) - batch + 1, batch)
        ours = np.concatenate([step.evaluate(held[at : at + batch])[0].argmax(1) for at in whole])
        with torch.no_grad():
            other = theirs(torch.from_numpy(held[: len(ours)])).argmax(1).numpy()
        found[0].append(100 * float((ours == wanted[: len(ours)]).mean()))
        found[1].append(100 * float((other == wanted[: len(ours)]).mean()))
    return found


@dataclass(frozen=True)
class Runs:
    """The runs to make: these networks, each with so many seeds.

    Attributes
    ----------
    kept : a JSON file of finished runs, which are not made again; None where nothing is kept.
    """

    names: Sequence[str]
    seeds: int
    epochs: int
    batch: int
    kept: Path | None = None

    def of(self, name: str, seed: int) -> tuple[list[float], list[float]]:
        """One run, made now or earlier."""
        known = json.loads(self.kept.read_text()) if self.kept is not None and self.kept.exists() else {}
        key = f"{name}, seed {seed}, {self.epochs} epochs of batches of {self.batch}"
        if key not in known:
            known[key] = trained(name, seed, self.epochs, self.batch)
            if self.kept is not None:
                self.kept.write_text(json.dumps(known, indent=1))
        ours, other = known[key]
        return ours, other


def print_runs(runs: Runs, picture: str | None) -> None:
    """Print the table, row by row, and draw the mean curves."""
    torch.set_num_threads(1)
    print("| network | seed | tvm_mxplan, % | PyTorch, % |\n| --- | --- | --- | --- |")
    panels = []
    for name in runs.names:
        rows = []
        for seed in range(runs.seeds):
            rows.append(runs.of(name, seed))
            ours, other = rows[-1]
            print(f"| {name} | {seed} | {_told(ours)} | {_told(other)} |", flush=True)
        means = np.mean(np.array(rows), axis=0)
        last = means[:, -1]
        print(f"| {name} | mean | {last[0]:.2f} | {last[1]:.2f}, {last[0] - last[1]:+.2f} |", flush=True)
        panels.append(
            CurvePanel(f"{name}: validation accuracy, %", {"tvm_mxplan": means[0], "PyTorch": means[1]})
        )
        if picture:
            draw(picture, panels)


def _told(accuracies: list[float]) -> str:
    return ", ".join(f"{accuracy:.2f}" for accuracy in accuracies)
