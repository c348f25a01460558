"""A detector of the YOLO kind: stages of split bottlenecks, features joined both ways, three heads."""

from __future__ import annotations

import torch
from torch import nn


def _conv(inputs: int, outputs: int, size: int = 1, stride: int = 1) -> nn.Module:
    conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.SiLU())


class _Stage(nn.Module):
    """Splits the channels, runs bottlenecks on one half, and joins all that they gave."""

    def __init__(self, inputs: int, outputs: int, blocks: int) -> None:
        super().__init__()
        half = outputs // 2
        self.first = _conv(inputs, outputs)
        self.blocks = nn.ModuleList(
            nn.Sequential(_conv(half, half, 3), _conv(half, half, 3)) for _ in range(blocks)
        )
        self.last = _conv((2 + blocks) * half, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class _Pools(nn.Module):
    """Max pools after one another, joined."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.last = _conv(width, width // 2), _conv(width * 2, width)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    """Boxes, as expectations over bins, and scores of classes for each cell of three grids."""

    bins, classes = 16, 80

    def __init__(self) -> None:
        super().__init__()
        widths = (16, 32, 64, 128, 256)
        self.stem = _conv(3, widths[0], 3, 2)
        self.stages = nn.ModuleList(
            nn.Sequential(_conv(one, two, 3, 2), _Stage(two, two, blocks))
            for one, two, blocks in zip(widths[:-1], widths[1:], (1, 2, 2, 1), strict=True)
        )
        self.pools = _Pools(256)
        self.up = nn.ModuleList([_Stage(384, 128, 1), _Stage(192, 64, 1)])
        self.down = nn.ModuleList([_conv(64, 64, 3, 2), _conv(128, 128, 3, 2)])
        self.joins = nn.ModuleList([_Stage(192, 128, 1), _Stage(384, 256, 1)])
        self.boxes = nn.ModuleList(
            nn.Sequential(_conv(width, 64, 3), _conv(64, 64, 3), nn.Conv2d(64, 4 * self.bins, 1))
            for width in widths[2:]
        )
        self.scores = nn.ModuleList(
            nn.Sequential(_conv(width, 80, 3), _conv(80, 80, 3), nn.Conv2d(80, self.classes, 1))
            for width in widths[2:]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = []
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        fine, middle, coarse = features[1], features[2], self.pools(features[3])
        wide = nn.functional.interpolate
        middle = self.up[0](torch.cat([wide(coarse, scale_factor=2.0), middle], 1))
        fine = self.up[1](torch.cat([wide(middle, scale_factor=2.0), fine], 1))
        middle = self.joins[0](torch.cat([self.down[0](fine), middle], 1))
        coarse = self.joins[1](torch.cat([self.down[1](middle), coarse], 1))
        rows = []
        for level, boxes, scores in zip((fine, middle, coarse), self.boxes, self.scores, strict=True):
            along = torch.arange(self.bins, dtype=torch.float32)
            bins = boxes(level).flatten(2).unflatten(1, (4, self.bins)).softmax(2)
            distances = (bins * along[:, None]).sum(2)
            rows.append(torch.cat([distances, scores(level).flatten(2).sigmoid()], 1))
        return torch.cat(rows, 2)
