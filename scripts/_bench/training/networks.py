"""Networks of torchvision, timm and transformers with random weights, and batches to train them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from .inception_bn import inception_bn

CLASSES = 10


@dataclass(frozen=True)
class Network:
    """A network whose only result is scores: samples and classes, and positions behind them for text.

    Attributes
    ----------
    make : the module; dropouts are taken out of it, since no two engines drop the same.
    batch : inputs by name and labels, for a number of samples.
    """

    name: str
    make: Callable[[], torch.nn.Module]
    batch: Callable[[int], tuple[dict[str, torch.Tensor], torch.Tensor]]

    def made(self, seed: int = 0) -> torch.nn.Module:
        """The module in training mode, by the weights of a seed."""
        torch.manual_seed(seed)
        model = self.make().train()
        for module in model.modules():
            if isinstance(module, torch.nn.modules.dropout._DropoutNd):
                module.p = 0.0
        with torch.no_grad():
            for parameter in model.parameters():  # what begins as one number shows nothing of its use
                if parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
                    parameter.add_(torch.randn_like(parameter), alpha=0.1)
        return model

    def of_size(self, size: int | None) -> Network:
        """The same for images of another size; as it is without one."""
        return self if size is None else replace(self, batch=_images(size))


def _images(size: int) -> Callable[[int], tuple[dict[str, torch.Tensor], torch.Tensor]]:
    def batch(count: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        return {"x": torch.randn(count, 3, size, size)}, torch.randint(0, CLASSES, (count,))

    return batch


def _digits(name: str) -> Network:
    """One of those that `bench convergence` trains, whose input has the name that a sequence gives it."""

    def made() -> torch.nn.Module:
        from .digits import NETWORKS as those

        return those[name]()

    def batch(count: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        images, labels = _images(32)(count)
        return {"input": images["x"]}, labels

    return Network(f"{name}_digits", made, batch)


def _torchvision(name: str, size: int, **settings: Any) -> Network:
    def make() -> torch.nn.Module:
        import torchvision

        return getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, **settings)

    return Network(name, make, _images(size))


def _timm(name: str, size: int, **settings: Any) -> Network:
    def make() -> torch.nn.Module:
        import timm

        return timm.create_model(name, pretrained=False, num_classes=CLASSES, **settings)

    return Network(name, make, _images(size))


class _Layers(torch.nn.Module):
    """Recurrent layers over a sequence, and scores by the mean of all steps and the last states."""

    def __init__(self, kind: type[torch.nn.RNNBase], features: int, units: int, **settings: Any) -> None:
        super().__init__()
        self.layers = kind(features, units, **settings)
        directions = 2 if self.layers.bidirectional else 1
        self.steps = torch.nn.Linear(directions * units, CLASSES)
        self.last = torch.nn.Linear(units, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        every, states = self.layers(x)
        return self.steps(every.mean(0)) + self.last(sum(state[-1] for state in _tuple(states)))


def _tuple(states: Any) -> tuple[torch.Tensor, ...]:
    return states if isinstance(states, tuple) else (states,)


def _recurrent(name: str, kind: str, steps: int, features: int, units: int, **settings: Any) -> Network:
    def batch(count: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        return {"x": torch.randn(steps, count, features)}, torch.randint(0, CLASSES, (count,))

    return Network(name, lambda: _Layers(getattr(torch.nn, kind), features, units, **settings), batch)


class _Scores(torch.nn.Module):
    """A language model whose result is scores alone, classes before positions."""

    def __init__(self, model: torch.nn.Module, *, per_token: bool) -> None:
        super().__init__()
        self.model, self.per_token = model, per_token

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        logits = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits.transpose(1, 2) if self.per_token else logits


def _text(name: str, model: str, config: str, settings: Mapping[str, Any], *, per_token: bool) -> Network:
    vocabulary, length = 300, 21

    def make() -> torch.nn.Module:
        import transformers

        made = getattr(transformers, config)(vocab_size=vocabulary, num_labels=CLASSES, **settings)
        made.use_cache = False
        return _Scores(getattr(transformers, model)(made), per_token=per_token)

    def batch(count: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        ids = torch.randint(1, vocabulary, (count, length))
        mask = torch.ones_like(ids)
        mask[-1, length - 4 :] = 0
        labels = torch.randint(
            0, vocabulary if per_token else CLASSES, (count, length) if per_token else (count,)
        )
        return {"input_ids": ids, "attention_mask": mask}, labels

    return Network(name, make, batch)


_SMALL = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
}
NINE = (
    _torchvision("alexnet", 224),
    _torchvision("googlenet", 224, aux_logits=False, init_weights=False),
    _torchvision("vgg16", 224),
    _torchvision("vgg19", 224),
    Network("inception_bn", lambda: inception_bn(CLASSES), _images(224)),
    _torchvision("inception_v3", 299, aux_logits=False, init_weights=False),
    _torchvision("resnet50", 224),
    _torchvision("resnet152", 224),
    _timm("inception_v4", 299),
)
NETWORKS = {
    network.name: network
    for network in (
        *NINE,
        _digits("vgg"),
        _digits("resnet20"),
        _torchvision("resnet18", 64),
        _torchvision("mobilenet_v2", 64),
        _torchvision("mobilenet_v3_small", 64),
        _torchvision("vgg11_bn", 64),
        _torchvision("densenet121", 64),
        _torchvision("squeezenet1_1", 64),
        _torchvision("shufflenet_v2_x0_5", 64),
        _torchvision("efficientnet_b0", 64, stochastic_depth_prob=0.0),
        _timm("convnext_atto", 64),
        _timm("vit_tiny_patch16_224", 224),
        _timm("regnety_002", 64),
        _timm("mixer_s32_224", 224),
        _timm("swin_tiny_patch4_window7_224", 224),
        _timm("poolformer_s12", 64),
        _timm("edgenext_xx_small", 64),
        _timm("ghostnet_050", 64),
        _timm("resnest14d", 64),
        _timm("mobilevitv2_050", 64),
        _timm("levit_128s", 224),
        _recurrent("lstm", "LSTM", 9, 21, 35, num_layers=2, bidirectional=True),
        _recurrent("gru", "GRU", 9, 21, 35, num_layers=2, bidirectional=True),
        _recurrent("lstm_1024", "LSTM", 32, 1024, 1024),
        _recurrent("gru_1024", "GRU", 32, 1024, 1024),
        _recurrent("lstm_256_both", "LSTM", 64, 128, 256, num_layers=2, bidirectional=True),
        _text(
            "bert",
            "BertForSequenceClassification",
            "BertConfig",
            {**_SMALL, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
            per_token=False,
        ),
        _text(
            "gpt2",
            "GPT2LMHeadModel",
            "GPT2Config",
            {"n_embd": 48, "n_layer": 2, "n_head": 4, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
            per_token=True,
        ),
        _text(
            "llama", "LlamaForCausalLM", "LlamaConfig", {**_SMALL, "num_key_value_heads": 2}, per_token=True
        ),
        _text(
            "distilbert",
            "DistilBertForSequenceClassification",
            "DistilBertConfig",
            {
                "dim": 48,
                "n_layers": 2,
                "n_heads": 4,
                "hidden_dim": 96,
                "dropout": 0,
                "attention_dropout": 0,
                "seq_classif_dropout": 0,
            },
            per_token=False,
        ),
    )
}
