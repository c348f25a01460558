"""PyTorch's ways to run a step, each as a call that gives the loss; needs torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

import torch

from .compared_steps import Torch

Step = Callable[[], float]


def _plain(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], labels: torch.Tensor) -> Step:
    engine = Torch(model, torch.float32)
    return lambda: engine.step(inputs, labels)


def _channels_last(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], labels: torch.Tensor) -> Step:
    engine = Torch(copy.deepcopy(model).to(memory_format=torch.channels_last), torch.float32)
    turned = {
        name: tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor
        for name, tensor in inputs.items()
    }
    return lambda: engine.step(turned, labels)


def _compiled(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], labels: torch.Tensor) -> Step:
    """The model by ``torch.compile``; its first call compiles."""
    engine = Torch(model, torch.float32)
    engine.model = torch.compile(engine.model)
    return lambda: engine.step(inputs, labels)


ENGINES = {"nchw": _plain, "channels_last": _channels_last, "torch_compile": _compiled}
LAYOUTS = ("nchw", "channels_last")
"""The engines without a compiler."""


def known(names: Sequence[str]) -> list[str]:
    """The names, each of an engine."""
    for name in names:
        if name not in ENGINES:
            raise SystemExit(f"bench: there is no engine {name!r}; there are {', '.join(ENGINES)}")
    return list(names)
