"""Architectures of transformers by the names of its own list, made small without knowing any of them.

A configuration says what it consists of in names that most share (``hidden_size``, ``num_hidden_layers``,
...).  Those are made small, in nested configurations too; where sizes then do not suit each other, fewer of
them are.  Weights are random.  The signature of the module says which inputs it wants.  What does not work so
is told apart from what fails afterwards.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .catalogue import Network

PREFIX = "transformers:"
_LARGEST = 60_000_000
_VOCABULARY = 300
_SIZES = (
    *("hidden_size", "d_model", "n_embd", "emb_dim", "dim", "embed_dim", "embedding_size", "d_embed"),
    *("word_embed_proj_dim", "image_size"),
)
_INNER = (
    "intermediate_size",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "d_ff",
    "ffn_dim",
    "dim_feedforward",
    "n_inner",
)
_LAYERS = (
    *("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers"),
    *("num_encoder_layers", "num_decoder_layers"),
)
_PAIRS = ("num_key_value_heads", "num_experts_per_tok")
_HEADS = (
    *("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"),
    *("decoder_attention_heads", "num_experts", "n_routed_experts", "num_local_experts"),
)
_PARTS = (
    "head_dim",
    "d_kv",
    "kv_channels",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
)
_PLACES = ("max_position_embeddings", "n_positions")
_ONES = ("first_k_dense_replace", "n_group", "topk_group")
_HALVES = (
    "q_lora_rank",
    "qk_head_dim",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "projection_dim",
)
_STATES = ("state_size", "mamba_d_state")
_SMALL = {
    **dict.fromkeys(_SIZES, 64),
    **dict.fromkeys((*_INNER, *_PLACES), 128),
    **dict.fromkeys((*_LAYERS, *_PAIRS), 2),
    **dict.fromkeys(_HEADS, 4),
    **dict.fromkeys(_PARTS, 16),
    **dict.fromkeys(_HALVES, 32),
    **dict.fromkeys(_STATES, 8),
    **dict.fromkeys(_ONES, 1),
    "vocab_size": _VOCABULARY,
}
_RECIPES = (
    _SMALL,
    {**_SMALL, "num_key_value_heads": 4},
    {**dict.fromkeys(_LAYERS, 2), "vocab_size": _VOCABULARY},
)
_LINES = ("input_ids", "attention_mask", "decoder_input_ids", "input_values")
_TOKENS = (
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "decoder_start_token_id",
    "sep_token_id",
    "cls_token_id",
)


class NotMade(Exception):
    """An architecture that this recipe makes no working module of, or that PyTorch does not export."""


def architecture_names() -> list[str]:
    """The names of transformers' list of models, sorted."""
    from transformers.models.auto import modeling_auto

    return sorted(modeling_auto.MODEL_MAPPING_NAMES)


def architecture(name: str) -> Network:
    """The network of that name, with its prefix, of two samples at most.

    Raises
    ------
    NotMade
        With the reason, in transformers' or PyTorch's words.
    """
    said = ""
    for recipe in _RECIPES:
        try:
            return _network(name, recipe)
        except Exception as error:
            said = said or summary(error)
    raise NotMade(said)


def summary(error: BaseException) -> str:
    """The first cause of an error, in a line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _network(name: str, recipe: Mapping[str, int]) -> Network:
    import transformers
    from transformers.models.auto import configuration_auto, modeling_auto

    listed = name.removeprefix(PREFIX)
    config = configuration_auto.CONFIG_MAPPING[listed]()
    _make_small(config, recipe)
    made = modeling_auto.MODEL_MAPPING_NAMES[listed]
    kind = getattr(transformers, made if isinstance(made, str) else made[0])
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in kind(config).parameters())
    if count > _LARGEST:
        raise ValueError(f"{count:,} parameters, at most {_LARGEST:,} are tried")
    module = kind(config).float().eval()
    _spread(module)
    inputs = _inputs(module, config)
    with torch.no_grad():
        module(**inputs)
        torch.export.export(module, (), inputs, strict=False)
    return Network(
        name, lambda: module, lambda count: inputs if count == 2 else _inputs(module, config, count)
    )


def with_named_axes(network: Network) -> Network:
    """The architecture with as many axes of its inputs without a fixed size as PyTorch exports.

    Raises
    ------
    NotMade
        With the reason, in PyTorch's words.
    """
    module, inputs = network.make(), network.inputs(2)
    axes = {name: range(tensor.ndim if name in _LINES else 1) for name, tensor in inputs.items()}
    said = ""
    for some in (axes, dict.fromkeys(axes, range(1)), {name: range(1, len(axes[name])) for name in axes}):
        dynamic = {name: dict.fromkeys(some[name], torch.export.Dim.DYNAMIC) for name in inputs}
        try:
            with torch.no_grad():
                torch.export.export(module, (), inputs, strict=False, dynamic_shapes=dynamic)
        except Exception as error:
            said = said or summary(error)
        else:
            return _with_axes(network, inputs, dynamic)
    raise NotMade(said)


def _with_axes(network: Network, examples: dict[str, torch.Tensor], dynamic: Mapping[str, Any]) -> Network:
    made = network.inputs
    return dataclasses.replace(
        network, dynamic=dynamic, inputs=lambda count: _cut(made(count), examples, dynamic)
    )


def _cut(
    given: Mapping[str, torch.Tensor], examples: Mapping[str, torch.Tensor], dynamic: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    """The inputs, no larger than the examples along axes of a fixed size."""
    found = {}
    for name, tensor in given.items():
        places = [
            slice(None) if axis in dynamic[name] else slice(extent)
            for axis, extent in enumerate(examples[name].shape)
        ]
        found[name] = tensor[tuple(places)].contiguous()
    return found


def _make_small(config: Any, recipe: Mapping[str, int], depth: int = 3) -> None:
    from transformers import PretrainedConfig

    for name, value in recipe.items():
        found = getattr(config, name, None)
        if type(found) is int:
            with contextlib.suppress(NotImplementedError):  # a number that follows from others
                setattr(config, name, min(value, found))
    config.use_cache = False
    kinds = list(dict.fromkeys(getattr(config, "layer_types", None) or ()))
    if kinds and len(config.layer_types) != getattr(config, "num_hidden_layers", 0):
        config.layer_types = kinds * 2 if len(kinds) == 1 else kinds
        config.num_hidden_layers = len(config.layer_types)
    for at, name in enumerate(_TOKENS):
        if (getattr(config, name, None) or 0) >= _VOCABULARY:
            setattr(config, name, at)
    nested = [value for value in vars(config).values() if isinstance(value, PretrainedConfig)]
    for inner in nested if depth else ():
        _make_small(inner, recipe, depth - 1)


def _spread(module: torch.nn.Module) -> None:
    """Gives weights numbers with which results depend on all parts of a network."""
    for name, parameter in module.named_parameters():
        if not parameter.dtype.is_floating_point:
            continue
        noise = torch.randn_like(parameter)
        with torch.no_grad():
            if parameter.ndim >= 2:
                parameter.copy_(noise * (0.7 / max(1, parameter[0].numel()) ** 0.5))
            elif name.endswith("bias"):
                parameter.copy_(0.1 * noise)
            else:
                parameter.add_(0.1 * noise)


def _inputs(module: torch.nn.Module, config: Any, count: int = 2) -> dict[str, torch.Tensor]:
    """Inputs of `count` samples, the lines among them longer where there are more."""
    wanted = inspect.signature(module.forward).parameters
    inputs: dict[str, torch.Tensor] = {}
    length = 10 + count
    if "input_ids" in wanted:
        inputs["input_ids"] = torch.randint(4, _VOCABULARY // 2, (count, length))
    if "input_ids" in wanted and "attention_mask" in wanted:
        inputs["attention_mask"] = torch.ones(count, length, dtype=torch.int64)
        inputs["attention_mask"][1, length - 3 :] = 0
    if "decoder_input_ids" in wanted:
        inputs["decoder_input_ids"] = torch.randint(4, _VOCABULARY // 2, (count, 5 + count))
    alone = "input_ids" not in wanted or hasattr(config, "projection_dim")
    if "pixel_values" in wanted and alone:
        inputs["pixel_values"] = torch.randn(count, *_image(config))
    if "input_values" in wanted:
        inputs["input_values"] = torch.randn(count, 3600 + 200 * count)
    if "input_features" in wanted:
        inputs["input_features"] = torch.randn(count, 60, getattr(config, "num_mel_bins", None) or 80)
    if not inputs:
        raise ValueError(f"inputs are not known: {', '.join(wanted)}")
    return inputs


def _image(config: Any) -> Sequence[int]:
    size = getattr(config, "image_size", None) or getattr(
        getattr(config, "vision_config", None), "image_size", 64
    )
    height, width = (size, size) if isinstance(size, int) else size
    return getattr(config, "num_channels", None) or 3, height, width
