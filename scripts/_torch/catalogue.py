"""The networks: how each is made with random weights, and the inputs that it is tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes
    ----------
    make : the module, in evaluation mode.
    inputs : example inputs by name for a batch of some size.
    dynamic : axes with named dimensions, by input, as ``dynamic_shapes`` takes them.
    """

    name: str
    make: Callable[[], torch.nn.Module]
    inputs: Callable[[int], dict[str, torch.Tensor]]
    dynamic: Mapping[str, Any] = field(default_factory=dict)


def _timm(name: str, size: int = 224, batch: str = "batch") -> Network:
    def make() -> torch.nn.Module:
        import timm

        return timm.create_model(name, pretrained=False).eval()

    return Network(name, make, lambda count: {"x": torch.randn(count, 3, size, size)}, {"x": {0: batch}})


def _tokens(count: int, length: int = 37) -> dict[str, torch.Tensor]:
    ids = torch.randint(1, 400, (count, length))
    mask = torch.ones_like(ids)
    mask[-1, length - 5 :] = 0
    return {"input_ids": ids, "attention_mask": mask}


_SEQUENCE = torch.export.Dim("sequence", max=512)
_TEXT = {"input_ids": {0: "batch", 1: _SEQUENCE}, "attention_mask": {0: "batch", 1: _SEQUENCE}}


def _transformer(
    name: str,
    model: str,
    config: str,
    settings: Mapping[str, Any],
    inputs: Callable[[int], dict[str, torch.Tensor]] = _tokens,
    dynamic: Mapping[str, Any] = _TEXT,
    encoder: bool = False,
) -> Network:
    def make() -> torch.nn.Module:
        import transformers

        made = getattr(transformers, model)(getattr(transformers, config)(**settings)).eval()
        made.config.use_cache = False
        return made.get_encoder() if encoder else made

    return Network(name, make, inputs, dynamic)


class _Recurrent(torch.nn.Module):
    """A recurrent layer in both directions, and a linear one on what it leaves."""

    def __init__(self, kind: type[torch.nn.RNNBase]) -> None:
        super().__init__()
        self.layer = kind(19, 33, num_layers=2, bidirectional=True, batch_first=True)
        self.head = torch.nn.Linear(66, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0])


def _recurrent(name: str, kind: type[torch.nn.RNNBase]) -> Network:
    return Network(
        name,
        lambda: _Recurrent(kind).eval(),
        lambda count: {"x": torch.randn(count, 11, 19)},
        {"x": {0: "batch"}},
    )


_SMALL = {"vocab_size": 400, "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6}


def network_of(name: str) -> Network:
    """A network of the catalogue, or else of timm, for images of the size that timm states."""
    found = next((network for network in NETWORKS if network.name == name), None)
    if found is not None:
        return found
    import timm

    return _timm(name, timm.get_pretrained_cfg(name).input_size[-1])


NETWORKS = (
    _timm("resnet18", 96),
    _timm("mobilenetv3_small_100", 96),
    _timm("efficientnet_b0", 96),
    _timm("convnext_atto", 96),
    _timm("vit_tiny_patch16_224"),
    _timm("swin_tiny_patch4_window7_224"),
    _timm("mixer_s32_224"),
    _timm("levit_128s"),
    _timm("pvt_v2_b0", 96),
    _timm("poolformer_s12", 96),
    _timm("regnety_002", 96),
    _timm("mobilevitv2_050", 128),
    _timm("edgenext_xx_small", 96),
    _transformer("bert", "BertModel", "BertConfig", {**_SMALL, "intermediate_size": 192}),
    _transformer(
        "distilbert",
        "DistilBertModel",
        "DistilBertConfig",
        {"vocab_size": 400, "dim": 96, "n_layers": 3, "n_heads": 6, "hidden_dim": 192},
    ),
    _transformer(
        "gpt2", "GPT2LMHeadModel", "GPT2Config", {"vocab_size": 400, "n_embd": 96, "n_layer": 3, "n_head": 6}
    ),
    _transformer(
        "llama",
        "LlamaForCausalLM",
        "LlamaConfig",
        {**_SMALL, "intermediate_size": 192, "num_key_value_heads": 2},
    ),
    _transformer(
        "t5_encoder",
        "T5EncoderModel",
        "T5Config",
        {"vocab_size": 400, "d_model": 96, "d_kv": 16, "d_ff": 192, "num_layers": 3, "num_heads": 6},
    ),
    _transformer(
        "whisper_encoder",
        "WhisperModel",
        "WhisperConfig",
        {
            "vocab_size": 400,
            "d_model": 96,
            "encoder_layers": 3,
            "decoder_layers": 1,
            "encoder_attention_heads": 6,
            "decoder_attention_heads": 6,
            "encoder_ffn_dim": 192,
            "decoder_ffn_dim": 192,
            "max_source_positions": 100,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
        lambda count: {"input_features": torch.randn(count, 80, 200)},
        {"input_features": {0: "batch"}},
        encoder=True,
    ),
    _recurrent("lstm", torch.nn.LSTM),
    _recurrent("gru", torch.nn.GRU),
)


def calibrated(model: torch.nn.Module, network: Network, rounds: int = 3) -> torch.nn.Module:
    """The module with running statistics of random batches in its batch norms.

    Random weights without them make networks whose results no two engines agree on.  Parameters that begin as
    one number throughout (heads of zeros, scales of 1e-6) get random ones, so that what they do shows.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    norms = [
        module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    ]
    for norm in norms:
        norm.momentum = None  # a plain average
        norm.reset_running_stats()
        norm.train()
    with torch.no_grad():
        for _ in range(rounds if norms else 0):
            model(**network.inputs(4))
    return model.eval()
