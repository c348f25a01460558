"""Networks of other libraries on PyTorch, small, by the names of their classes.

Each is ``library:Class``: the class, what it is made with, and its inputs for one sample.  A library that is
not installed makes no network.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .architectures import NotMade
from .catalogue import Network

Input = tuple[int, ...] | int | range
"""Normal numbers of a shape, one number for each sample, or 16 integers of a range for each."""


@dataclass(frozen=True)
class _Entry:
    """A network.

    Attributes
    ----------
    made_in : module and class.
    settings : what the class is called with; in the place of one may stand another class with its settings.
    wrap : how the module is called, where not by itself.
    """

    made_in: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, Input]
    wrap: str = ""


class _Autoencoder(torch.nn.Module):
    """An autoencoder of diffusers' from images to images, through the middle of what it codes them as."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        coded = self.model.encode(x)
        if hasattr(coded, "latent_dist"):
            return self.model.decode(coded.latent_dist.mode()).sample
        return self.model.decode(coded[0]).sample


_WRAPPED = {"autoencoder": _Autoencoder}
_ATTENDING = {
    "sample_size": 32,
    "block_out_channels": (32, 64),
    "layers_per_block": 1,
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
    "norm_num_groups": 8,
}
_ATTENDED = {"timestep": 3, "encoder_hidden_states": (7, 32)}
_VIT = {
    "image_size": 64,
    "patch_size": 8,
    "num_classes": 10,
    "dim": 64,
    "depth": 2,
    "heads": 4,
    "mlp_dim": 128,
}
_SCALES = {
    "num_classes": 10, "s1_emb_dim": 16, "s2_emb_dim": 32, "s3_emb_dim": 64, "s4_emb_dim": 64, "s4_depth": 1,
}  # fmt: skip
_PAIR = {"image1": (3, 128, 160), "image2": (3, 128, 160)}
_IMAGE, _VOLUME = {"x": (3, 224, 224)}, {"x": (1, 32, 32, 32)}


def _of_torchvision(name: str, inputs: Mapping[str, Input]) -> tuple[str, _Entry]:
    return f"torchvision:{name}", _Entry("torchvision.models.get_model", {"name": name}, inputs)


def _of_diffusers(
    name: str, settings: Mapping[str, Any], inputs: Mapping[str, Input], wrap: str = ""
) -> tuple[str, _Entry]:
    return f"diffusers:{name}", _Entry(f"diffusers.{name}", settings, inputs, wrap)


def _of_monai(
    name: str, settings: Mapping[str, Any], inputs: Mapping[str, Input] = _VOLUME
) -> tuple[str, _Entry]:
    return f"monai:{name}", _Entry(f"monai.networks.nets.{name}", settings, inputs)


def _of_segmentation(name: str, encoder: str = "mobilenet_v2", **settings: Any) -> tuple[str, _Entry]:
    settings = {"encoder_name": encoder, "encoder_weights": None, **settings}
    return f"segmentation:{name}", _Entry(f"segmentation_models_pytorch.{name}", settings, _IMAGE)


def _of_vit_pytorch(module: str, name: str, settings: Mapping[str, Any], argument: str) -> tuple[str, _Entry]:
    inputs = {argument: (3, 224, 224) if "s4_depth" in settings else (3, 64, 64)}
    return f"vit_pytorch:{module}", _Entry(f"vit_pytorch.{module}.{name}", settings, inputs)


def _of_torchaudio(name: str, settings: Mapping[str, Any], inputs: Mapping[str, Input]) -> tuple[str, _Entry]:
    return f"torchaudio:{name}", _Entry(f"torchaudio.models.{name}", settings, inputs)


def _decoder(title: str, **settings: Any) -> tuple[str, _Entry]:
    layers = {"dim": 64, "depth": 2, "heads": 4, **settings}
    made = {"num_tokens": 100, "max_seq_len": 64, "attn_layers": ("x_transformers.Decoder", layers)}
    entry = _Entry("x_transformers.TransformerWrapper", made, {"x": range(100)})
    return f"x_transformers:{title}", entry


_ENTRIES = dict(
    [
        *(_of_torchvision(name, {"x": (3, 8, 56, 56)}) for name in ("r3d_18", "mc3_18", "r2plus1d_18")),
        *(_of_torchvision(name, {"x": (3, 16, 224, 224)}) for name in ("s3d", "mvit_v2_s")),
        _of_torchvision("swin3d_t", {"x": (3, 8, 64, 64)}),
        *(_of_torchvision(name, _IMAGE) for name in ("swin_v2_t", "maxvit_t", "vit_b_32")),
        *(_of_torchvision(name, _PAIR) for name in ("raft_small", "raft_large")),
        _of_diffusers("UNet2DConditionModel", {
            **_ATTENDING,
            "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
            "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
        }, {"sample": (4, 32, 32), **_ATTENDED}),
        _of_diffusers("UNet3DConditionModel", {
            **_ATTENDING,
            "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
            "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"),
        }, {"sample": (4, 4, 16, 16), **_ATTENDED}),
        _of_diffusers("ControlNetModel", {
            **{key: value for key, value in _ATTENDING.items() if key != "sample_size"},
            "conditioning_embedding_out_channels": (16, 32),
            "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        }, {"sample": (4, 32, 32), **_ATTENDED, "controlnet_cond": (3, 64, 64)}),
        _of_diffusers("AutoencoderKL", {
            "block_out_channels": (32, 64),
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
            "norm_num_groups": 8,
        }, {"x": (3, 32, 32)}, "autoencoder"),
        _of_diffusers("AutoencoderTiny", {}, {"x": (3, 64, 64)}, "autoencoder"),
        _of_diffusers("AutoencoderKLWan", {
            "base_dim": 3, "z_dim": 16, "dim_mult": [1, 1, 1, 1], "num_res_blocks": 1,
            "temperal_downsample": [False, True, True],
        }, {"x": (3, 9, 16, 16)}, "autoencoder"),
        _of_diffusers("DiTTransformer2DModel", {
            "sample_size": 8, "num_layers": 2, "patch_size": 2, "attention_head_dim": 8,
            "num_attention_heads": 4, "in_channels": 4, "out_channels": 8, "num_embeds_ada_norm": 8,
        }, {"hidden_states": (4, 8, 8), "timestep": 3, "class_labels": 2}),
        _of_diffusers("SD3Transformer2DModel", {
            "sample_size": 32, "patch_size": 1, "in_channels": 4, "num_layers": 2, "attention_head_dim": 8,
            "num_attention_heads": 4, "caption_projection_dim": 32, "joint_attention_dim": 32,
            "pooled_projection_dim": 64, "out_channels": 4, "pos_embed_max_size": 96,
        }, {
            "hidden_states": (4, 16, 16), "encoder_hidden_states": (12, 32), "pooled_projections": (64,),
            "timestep": 3,
        }),
        _of_diffusers("WanTransformer3DModel", {
            "patch_size": (1, 2, 2), "num_attention_heads": 2, "attention_head_dim": 12, "in_channels": 4,
            "out_channels": 4, "text_dim": 16, "freq_dim": 256, "ffn_dim": 32, "num_layers": 2,
            "cross_attn_norm": True, "qk_norm": "rms_norm_across_heads", "rope_max_seq_len": 32,
        }, {"hidden_states": (4, 2, 16, 16), "timestep": 3, "encoder_hidden_states": (12, 16)}),
        _of_monai("UNet", {
            "spatial_dims": 3, "in_channels": 1, "out_channels": 3, "channels": (8, 16, 32),
            "strides": (2, 2), "num_res_units": 2,
        }),
        _of_monai("AttentionUnet", {
            "spatial_dims": 3, "in_channels": 1, "out_channels": 2, "channels": (8, 16, 32),
            "strides": (2, 2),
        }),
        _of_monai("SegResNet", {"spatial_dims": 3, "init_filters": 8}),
        _of_monai("VNet", {"spatial_dims": 3, "in_channels": 1, "out_channels": 2}),
        _of_monai("HighResNet", {"spatial_dims": 3, "in_channels": 1, "out_channels": 2}),
        _of_monai("SwinUNETR", {
            "in_channels": 1, "out_channels": 2, "feature_size": 12,
        }, {"x_in": (1, 64, 64, 64)}),
        _of_monai("UNETR", {
            "in_channels": 1, "out_channels": 2, "img_size": (32, 32, 32), "hidden_size": 96, "mlp_dim": 192,
            "num_heads": 6, "feature_size": 8,
        }, {"x_in": (1, 32, 32, 32)}),
        *map(_of_segmentation, ("FPN", "Linknet", "MAnet", "PSPNet", "Segformer", "Unet", "UnetPlusPlus")),
        _of_segmentation("DeepLabV3"),
        _of_segmentation("UPerNet", "mit_b0"),
        _of_segmentation("PAN", "resnet18"),
        _of_segmentation("DPT", "tu-vit_tiny_patch16_224", dynamic_img_size=True),
        _of_torchaudio("ConvTasNet", {"msk_num_layers": 3, "msk_num_stacks": 2}, {"input": (1, 2000)}),
        _of_torchaudio("DeepSpeech", {"n_feature": 40, "n_hidden": 64}, {"x": (1, 33, 40)}),
        _of_torchaudio("Wav2Letter", {"input_type": "mfcc", "num_features": 40}, {"x": (40, 71)}),
        _of_torchaudio("hdemucs_low", {"sources": ["one", "other"]}, {"input": (2, 22050)}),
        _of_torchaudio("squim_objective_base", {}, {"x": (16000,)}),
        _of_vit_pytorch("deepvit", "DeepViT", _VIT, "img"),
        _of_vit_pytorch("rvt", "RvT", _VIT, "img"),
        _of_vit_pytorch("simple_vit_with_fft", "SimpleViT", {**_VIT, "freq_patch_size": 8}, "img"),
        _of_vit_pytorch("twins_svt", "TwinsSVT", _SCALES, "x"),
        _of_vit_pytorch("max_vit", "MaxViT", {
            "num_classes": 10, "dim": 32, "depth": (1, 1), "dim_conv_stem": 16, "window_size": 4,
        }, "x"),
        _decoder("rotary", rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True),
        _decoder("alibi", alibi_pos_bias=True),
        _decoder("relative", rel_pos_bias=True),
        _decoder("talking_heads", attn_pre_talking_heads=True, attn_post_talking_heads=True),
        _decoder("sparse", attn_sparse_topk=4),
        _decoder("memory", attn_num_mem_kv=8, attn_kv_heads=2),
    ]
)  # fmt: skip
LIBRARIES = tuple(dict.fromkeys(name.partition(":")[0] for name in _ENTRIES))


def library_names(libraries: str) -> list[str]:
    """The networks of some libraries, or of all, by name.

    Raises
    ------
    ValueError : a library of which there are none.
    """
    wanted = LIBRARIES if libraries == "all" else tuple(libraries.split(","))
    unknown = sorted({*wanted} - {*LIBRARIES})
    if unknown:
        raise ValueError(
            f"no networks of {', '.join(unknown)}; expected some of {', '.join(LIBRARIES)}, or all"
        )
    return [name for name in _ENTRIES if name.partition(":")[0] in wanted]


def library_network(name: str) -> Network | None:
    """The network of that name; None where no library's is called so."""
    entry = _ENTRIES.get(name)
    if entry is None:
        return None

    def make() -> torch.nn.Module:
        model = _made(entry.made_in, entry.settings)
        return _WRAPPED[entry.wrap](model).eval() if entry.wrap else model.eval()

    def inputs(count: int) -> dict[str, torch.Tensor]:
        return {key: _input(kind, count) for key, kind in entry.inputs.items()}

    return Network(name, make, inputs)


def _made(made_in: str, settings: Mapping[str, Any]) -> Any:
    """A class called with its settings; a pair of another class and its settings is made first."""
    module, _, name = made_in.rpartition(".")
    try:
        made = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise NotMade(str(error)) from error
    parts = {key: _made(*part) if _is_pair(part) else part for key, part in settings.items()}
    return made(**parts)


def _is_pair(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 2 and isinstance(part[1], Mapping)


def _input(kind: Input, count: int) -> torch.Tensor:
    if isinstance(kind, range):
        return torch.randint(kind.start, kind.stop, (count, 16))
    return torch.full((count,), kind) if isinstance(kind, int) else torch.randn(count, *kind)
