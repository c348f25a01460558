"""Networks that are deployed today, at their own sizes and with fixed shapes. Imports no torch."""

from __future__ import annotations

from typing import Any

from .networks import Network

_DETECTOR_SIZE = 320


_VOCABULARY, _PAST = 5000, 512
_WHISPER_TINY = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
_LLAMA = {
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1408,
}


def modern(batch: int) -> tuple[Network, ...]:
    """The networks at one batch; their order is the order of tables."""

    def image(name: str) -> Network:
        return _image(name, batch)

    def text(name: str, tokens: int, **settings: Any) -> Network:
        return _text(name, batch, tokens, **settings)

    past = {f"past_{kind}_{at}": (batch, 12, _PAST, 64) for at in range(12) for kind in ("key", "value")}
    step = {"ids": (batch, 1), "mask": (batch, _PAST + 1), **past}
    return (
        image("mobilenetv3_small_100"),
        image("mobilenetv4_conv_small"),
        image("efficientnet_lite0"),
        image("tf_efficientnetv2_b0"),
        image("regnetx_008"),
        image("seresnet50"),
        image("resnext26ts"),
        image("convnext_atto"),
        image("convnextv2_atto"),
        image("nfnet_l0"),
        image("hgnetv2_b0"),
        image("vit_tiny_patch16_224"),
        image("vit_small_patch16_224"),
        image("deit_tiny_patch16_224"),
        image("swin_tiny_patch4_window7_224"),
        image("mixer_s16_224"),
        image("mobilevitv2_100"),
        image("edgenext_small"),
        image("levit_128s"),
        image("pvt_v2_b0"),
        image("poolformer_s12"),
        image("maxvit_tiny_tf_224"),
        text("Bert", 128),
        text("DistilBert", 128),
        text("GPT2", 64, use_cache=False),
        Network("GPT2", "cached", step, tokens=_VOCABULARY),
        text("T5Encoder", 128),
        Network("Whisper", "encoder", {"x": (batch, 80, 3000)}, settings=_WHISPER_TINY),
        text("Llama", 64, use_cache=False, **_LLAMA),
        Network("lstm", "plain", {"x": (batch, 64, 128)}, settings={"hidden": 256}),
        Network("gru", "plain", {"x": (batch, 64, 128)}, settings={"hidden": 256}),
        Network("yolo", "plain", {"x": (batch, 3, _DETECTOR_SIZE, _DETECTOR_SIZE)}),
    )


def held_back(batch: int) -> tuple[Network, ...]:
    """Networks that were named before rules and kernels of 2026-11-23 were made, and timed after."""
    return (
        _image("repvit_m1_0", batch),
        _image("regnety_008", batch),
        _image("ghostnetv2_100", batch),
        _image("twins_svt_small", batch),
        _text("Electra", batch, 128),
        _text("Qwen2", batch, 64, use_cache=False, **_LLAMA),
    )


def recurrent(batch: int) -> tuple[Network, ...]:
    """Single layers of 1,024 units, forward alone, over 32 steps."""
    settings = {"hidden": 1024, "layers": 1, "both": False}
    names = ("lstm_1024", "gru_1024")
    return tuple(Network(name, "plain", {"x": (batch, 32, 1024)}, settings=settings) for name in names)


def _image(name: str, batch: int) -> Network:
    return Network(name, "timm", {"x": (batch, 3, 224, 224)})


def _text(name: str, batch: int, tokens: int, **settings: Any) -> Network:
    inputs = {"ids": (batch, tokens), "mask": (batch, tokens)}
    return Network(name, "transformers", inputs, settings=settings, tokens=_VOCABULARY)
