"""The networks: how each is made, and which dimensions of its inputs are named. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Network:
    """A network with random weights.

    Attributes
    ----------
    kind : ``timm``, ``transformers``, ``cached`` (of transformers, with keys and values of earlier tokens),
        ``encoder`` (the part of transformers' that reads features) or ``plain``, which says who makes it.
    inputs : shapes of the inputs when it is exported, by name; integers up to ``tokens`` where that is set.
    named : names of dimensions by axis, for each input.
    sizes : the numbers that named dimensions have when results are compared.
    settings : passed to the one who makes it.
    """

    name: str
    kind: str
    inputs: Mapping[str, tuple[int, ...]]
    named: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    sizes: Sequence[Mapping[str, int]] = ({},)
    settings: Mapping[str, Any] = field(default_factory=dict)
    tokens: int = 0

    @property
    def label(self) -> str:
        """The name in tables and of files."""
        return f"{self.name}_cached" if self.kind == "cached" else self.name


def _image(name: str, size: int = 64, **settings: Any) -> Network:
    return Network(name, "timm", {"x": (1, 3, size, size)}, settings=settings)


def _batch(name: str, size: int = 64, **settings: Any) -> Network:
    named = {"x": {0: "batch"}}
    sizes = ({"batch": 1}, {"batch": 3})
    return Network(name, "timm", {"x": (2, 3, size, size)}, named, sizes, settings)


_TEXT = {"ids": (2, 9), "mask": (2, 9)}
_NAMES = {name: {0: "batch", 1: "seq"} for name in _TEXT}
_LENGTHS = ({"batch": 2, "seq": 9}, {"batch": 1, "seq": 1}, {"batch": 3, "seq": 17})


def _text(name: str, **settings: Any) -> Network:
    return Network(name, "transformers", _TEXT, _NAMES, _LENGTHS, settings, tokens=100)


def _cached(name: str, layers: int, heads: int, width: int, **settings: Any) -> Network:
    """A model of transformers after 5 tokens, with a mask over those and 3 new ones."""
    past = {f"past_{kind}_{at}": (2, heads, 5, width) for at in range(layers) for kind in ("key", "value")}
    named = {"ids": {0: "batch", 1: "seq"}, "mask": {0: "batch", 1: "past + seq"}}
    named |= {tensor: {0: "batch", 2: "past"} for tensor in past}
    sizes = (
        {"batch": 2, "past": 5, "seq": 3},
        {"batch": 1, "past": 0, "seq": 7},
        {"batch": 3, "past": 17, "seq": 1},
    )
    inputs = {"ids": (2, 3), "mask": (2, 8), **past}
    each = [one | {"past + seq": one["past"] + one["seq"]} for one in sizes]
    return Network(name, "cached", inputs, named, each, settings, tokens=100)


_HEADS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}

NETWORKS = (
    _batch("resnet18"),
    _batch("vit_tiny_patch16_224", img_size=64),
    _batch("swin_tiny_patch4_window7_224", 56, img_size=56, embed_dim=24, depths=(1, 1, 2, 1)),
    _batch("convnext_atto"),
    _image("mobilenetv3_small_050"),
    _image("efficientnet_b0"),
    _image("mixer_s16_224", img_size=64),
    _image("levit_128s", 224),
    _image("pvt_v2_b0"),
    _image("poolformer_s12"),
    _image("mobilevitv2_050"),
    _image("edgenext_xx_small"),
    _image("hgnetv2_b0"),
    _image("densenet121"),
    _image("regnetx_002"),
    _image("regnety_002"),
    _image("ghostnet_050"),
    _image("mnasnet_050"),
    _image("repvgg_a0"),
    _image("mobileone_s0"),
    _image("fastvit_t8"),
    _image("dla46_c"),
    _image("lcnet_050"),
    _image("tinynet_e"),
    _image("tf_efficientnetv2_b0"),
    _image("mobilenetv2_050"),
    _image("resnet10t"),
    _image("seresnext26d_32x4d"),
    _image("xcit_nano_12_p16_224"),
    _image("nf_regnet_b0"),
    _text("Bert", max_position_embeddings=64, **_HEADS),
    _text("Roberta", max_position_embeddings=64, pad_token_id=0, **_HEADS),
    _text("Albert", max_position_embeddings=64, embedding_size=16, **_HEADS),
    _text("DistilBert", max_position_embeddings=64, dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    _text("GPT2", n_positions=64, n_embd=32, n_layer=2, n_head=4, use_cache=False),
    _text("Llama", num_key_value_heads=2, use_cache=False, **_HEADS),
    _cached("GPT2", 2, 4, 8, n_positions=64, n_embd=32, n_layer=2, n_head=4),
    _cached("Llama", 2, 2, 8, num_key_value_heads=2, **_HEADS),
    _text("T5Encoder", d_model=32, num_layers=2, num_heads=4, d_ff=64, d_kv=8),
    Network("lstm", "plain", {"x": (2, 7, 8)}),
    Network(
        "unet",
        "plain",
        {"x": (2, 3, 32, 48)},
        {"x": {0: "batch", 2: "height", 3: "width"}},
        ({"batch": 2, "height": 32, "width": 48}, {"batch": 1, "height": 64, "width": 16}),
    ),
    Network(
        "detector",
        "plain",
        {"x": (2, 3, 64, 96)},
        {"x": {0: "batch", 2: "height", 3: "width"}},
        ({"batch": 2, "height": 64, "width": 96}, {"batch": 1, "height": 96, "width": 32}),
    ),
)
