"""Exports networks that the zoo lacks: a UNet with transposed convolutions, a ViT; imports torch and timm.

scripts/cudnn exports FOLDER
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch


class _Twice(torch.nn.Sequential):
    """Two convolutions with batch norms and relus."""

    def __init__(self, inputs: int, outputs: int) -> None:
        layers: list[torch.nn.Module] = []
        for channels in (inputs, outputs):
            layers.append(torch.nn.Conv2d(channels, outputs, 3, padding=1, bias=False))
            layers += [torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]
        super().__init__(*layers)


class UNet(torch.nn.Module):
    """Four times down by pools, four times up by transposed convolutions, joined with what was on the way."""

    def __init__(self, width: int = 64, classes: int = 2) -> None:
        super().__init__()
        widths = [width << level for level in range(5)]
        self.first = _Twice(3, width)
        self.down = torch.nn.ModuleList(map(_Twice, widths[:-1], widths[1:]))
        self.grow = torch.nn.ModuleList(
            torch.nn.ConvTranspose2d(wide, narrow, 2, stride=2)
            for wide, narrow in zip(widths[:0:-1], widths[-2::-1], strict=True)
        )
        self.join = torch.nn.ModuleList(map(_Twice, widths[:0:-1], widths[-2::-1]))
        self.last = torch.nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = [self.first(x)]
        for layer in self.down:
            kept.append(layer(torch.nn.functional.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for grow, join in zip(self.grow, self.join, strict=True):
            x = join(torch.cat([kept.pop(), grow(x)], 1))
        return self.last(x)


def _vit() -> torch.nn.Module:
    import timm

    return timm.create_model("vit_small_patch16_224", pretrained=False)


MODELS = {"unet": (UNet, (1, 3, 256, 256)), "vit_small": (_vit, (1, 3, 224, 224))}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scripts/cudnn exports", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    for name, (make, shape) in MODELS.items():
        path = folder / f"{name}.onnx"
        with torch.no_grad():
            torch.onnx.export(
                make().eval(),
                (torch.randn(shape),),
                str(path),
                dynamo=False,
                opset_version=17,
                input_names=["x"],
            )
        print(path, flush=True)


if __name__ == "__main__":
    main()
