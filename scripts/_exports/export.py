"""Exports networks, in a process of its own: the only part that imports torch; prints JSON, a line each."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch

from .networks import Network
from .tables import TABLES, file_of
from .yolo import Yolo


class _Text(torch.nn.Module):
    """A model of transformers as a function of tokens and a mask."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, attention_mask=mask)[0]


class _Cached(torch.nn.Module):
    """A model of transformers with keys and values of earlier tokens, layer by layer, in and out."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        from transformers import DynamicCache

        pairs = list(zip(past[::2], past[1::2], strict=True))
        cache = DynamicCache(pairs)
        found = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        layers = found.past_key_values.layers
        return found[0], *(tensor for layer in layers for tensor in (layer.keys, layer.values))


class _Encoder(torch.nn.Module):
    """The encoder of a model of transformers, as a function of features."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model.get_encoder()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)[0]


class _Recurrent(torch.nn.Module):
    def __init__(
        self, kind: type[torch.nn.RNNBase], width: int, hidden: int = 16, layers: int = 2, both: bool = True
    ) -> None:
        super().__init__()
        self.layers = kind(width, hidden, layers, bidirectional=both, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)[0]


class _UNet(torch.nn.Module):
    """Down twice, up twice, to the sizes of the tensors on the way down."""

    def __init__(self) -> None:
        super().__init__()
        conv = torch.nn.Conv2d
        self.down = torch.nn.ModuleList(
            [conv(3, 8, 3, padding=1), conv(8, 16, 3, stride=2, padding=1), conv(16, 24, 3, 2, 1)]
        )
        self.up = torch.nn.ModuleList([conv(40, 16, 3, padding=1), conv(24, 8, 3, padding=1)])
        self.last = conv(8, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for layer in self.down:
            x = layer(x).relu()
            kept.append(x)
        for layer, side in zip(self.up, kept[-2::-1], strict=True):
            x = torch.nn.functional.interpolate(x, size=side.shape[2:], mode="bilinear", align_corners=False)
            x = layer(torch.cat([x, side], 1)).relu()
        return self.last(x)


class _Detector(torch.nn.Module):
    """Features at two strides, joined by an upsampling, and a head with the centres of its cells."""

    def __init__(self) -> None:
        super().__init__()
        conv = torch.nn.Conv2d
        self.stem, self.deep = conv(3, 16, 3, stride=8, padding=1), conv(16, 32, 3, stride=2, padding=1)
        self.join, self.heads = (
            conv(48, 16, 3, padding=1),
            torch.nn.ModuleList([conv(16, 7, 1), conv(32, 7, 1)]),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fine = torch.nn.functional.silu(self.stem(x))
        coarse = torch.nn.functional.silu(self.deep(fine))
        wide = torch.nn.functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
        levels = [torch.nn.functional.silu(self.join(torch.cat([fine, wide], 1))), coarse]
        rows = []
        for stride, level, head in zip((8.0, 16.0), levels, self.heads, strict=True):
            found = head(level)
            height, width = found.shape[2:]
            down = torch.arange(height, dtype=torch.float32) + 0.5
            along = torch.arange(width, dtype=torch.float32) + 0.5
            centres = torch.stack(torch.meshgrid(along, down, indexing="xy")).reshape(1, 2, -1)
            flat = found.flatten(2)
            rows.append(
                torch.cat([(flat[:, :2] + centres) * stride, flat[:, 2:4].exp(), flat[:, 4:].sigmoid()], 1)
            )
        return torch.cat(rows, 2).transpose(1, 2)


def _plain(network: Network) -> torch.nn.Module:
    recurrent = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
    if kind := recurrent.get(network.name.partition("_")[0]):
        return _Recurrent(kind, network.inputs["x"][-1], **network.settings)
    return {"unet": _UNet, "detector": _Detector, "yolo": Yolo}[network.name]()


def _made(network: Network) -> torch.nn.Module:
    if network.kind == "plain":
        return _plain(network)
    if network.kind == "timm":
        import timm

        return timm.create_model(network.name, pretrained=False, **network.settings)
    import transformers

    base = network.name.removesuffix("Encoder")
    vocabulary = {"vocab_size": network.tokens} if network.tokens else {}
    config = getattr(transformers, f"{base}Config")(**vocabulary, **network.settings)
    wrapper = {"transformers": _Text, "cached": _Cached, "encoder": _Encoder}[network.kind]
    return wrapper(getattr(transformers, f"{network.name}Model")(config))


def _example(network: Network) -> list[torch.Tensor]:
    whole = {
        "ids": lambda shape: torch.randint(1, network.tokens, shape),
        "mask": lambda shape: torch.ones(shape, dtype=torch.int64),
    }
    return [whole.get(name, torch.randn)(shape) for name, shape in network.inputs.items()]


def _calibrated(model: torch.nn.Module, network: Network) -> torch.nn.Module:
    """The model with batch norms that know what passes through them; it is ill-conditioned without."""
    model.eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
                parameter += 0.1 * torch.randn_like(parameter)  # else zero heads show nothing
    norms = [part for part in model.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
        norm.train()
    if norms:
        with torch.no_grad():
            for _ in range(3):
                model(*(torch.randn(4, *part.shape[1:]) for part in _example(network)))
    return model.eval()


def made_again(table: str, number: int) -> torch.nn.Module:
    """The network of a table, with the weights that its export has."""
    network = TABLES[table]()[number]
    torch.manual_seed(number)
    return _calibrated(_made(network), network)


def main(table: str, folder: Path, items: list[str]) -> None:
    """Write networks of a table to files; an item is a number in it and an exporter, ``new`` or ``old``."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    networks = TABLES[table]()
    for item in items:
        number, _, exporter = item.partition(":")
        network = networks[int(number)]
        path = folder / file_of(network, exporter)
        if path.exists():
            continue
        failure = ""
        torch.manual_seed(int(number))
        try:
            _export(network, exporter, path.with_name(f"partial_{path.name}"))
            path.with_name(f"partial_{path.name}").rename(path)
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            failure = f"{type(error).__name__}: {lines[0] if lines else ''}"
        print(json.dumps({"item": item, "failure": failure}), flush=True)


def _export(network: Network, exporter: str, path: Path) -> None:
    model, example = _calibrated(_made(network), network), tuple(_example(network))
    names = list(network.inputs)
    options: dict[str, object] = {"dynamo": exporter == "new", "input_names": names}
    if exporter == "old":
        options |= {
            "opset_version": 17,
            "dynamic_axes": {name: dict(dims) for name, dims in network.named.items()},
        }
    else:
        options["external_data"] = False
    if exporter == "new" and network.named:
        dims = [dict.fromkeys(network.named.get(name, {}), torch.export.Dim.DYNAMIC) for name in names]
        past = (tuple(dims[2:]),) if network.kind == "cached" else tuple(dims[2:])
        options["dynamic_shapes"] = (*dims[:2], *past)
    with torch.no_grad():
        torch.onnx.export(model, example, str(path), verbose=False, **options)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
