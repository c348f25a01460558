"""Inception with batch norms, by its paper's table; needs torch."""

from __future__ import annotations

import torch
from torch import nn

_WIDE = (
    # at 28: 1x1; 1x1, 3x3; 1x1, 3x3 twice; the pool's 1x1; a row without a first column halves the image
    ((64, 64, 64, 64, 96, 32), (64, 64, 96, 64, 96, 64), (128, 160, 64, 96)),
    (
        (224, 64, 96, 96, 128, 128),
        (192, 96, 128, 96, 128, 128),
        (160, 128, 160, 128, 160, 128),
        (96, 128, 192, 160, 192, 128),
        (128, 192, 192, 256),
    ),
    ((352, 192, 320, 160, 224, 128), (352, 192, 320, 192, 224, 128)),
)


def _unit(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


class _Side(nn.Module):
    """Branches whose channels stand side by side."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class _Whole(nn.Sequential):
    """Its parts one after the other, of an input named as in other networks."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)


def _same(inputs: int, widths: tuple[int, ...], pool: nn.Module) -> _Side:
    one, three, three_out, twice, twice_out, behind = widths
    return _Side(
        _unit(inputs, one, 1),
        nn.Sequential(_unit(inputs, three, 1), _unit(three, three_out, 3)),
        nn.Sequential(_unit(inputs, twice, 1), _unit(twice, twice_out, 3), _unit(twice_out, twice_out, 3)),
        nn.Sequential(pool, _unit(inputs, behind, 1)),
    )


def _halved(inputs: int, widths: tuple[int, ...]) -> _Side:
    three, three_out, twice, twice_out = widths
    return _Side(
        nn.Sequential(_unit(inputs, three, 1), _unit(three, three_out, 3, 2)),
        nn.Sequential(_unit(inputs, twice, 1), _unit(twice, twice_out, 3), _unit(twice_out, twice_out, 3, 2)),
        nn.MaxPool2d(3, 2, 1),
    )


def inception_bn(classes: int) -> nn.Module:
    """The network for images of 224x224, or others: the last pool is of whole images."""
    rows: list[nn.Module] = [_unit(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), _unit(64, 64, 1), _unit(64, 192, 3)]
    rows.append(nn.MaxPool2d(3, 2, 1))
    inputs, last = 192, _WIDE[-1][-1]
    for widths in (widths for stage in _WIDE for widths in stage):
        if len(widths) == 4:
            rows.append(_halved(inputs, widths))
            inputs += widths[1] + widths[3]
            continue
        pool = nn.MaxPool2d(3, 1, 1) if widths is last else nn.AvgPool2d(3, 1, 1)
        rows.append(_same(inputs, widths, pool))
        inputs = widths[0] + widths[2] + widths[4] + widths[5]
    return _Whole(*rows, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
