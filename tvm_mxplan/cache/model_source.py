"""A model as the cache sees it: its fingerprint and its initializers' bytes, before anything is imported."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm

from ..core.fingerprint import Buffer, content_digest, content_digests
from ..frontend.onnx_file import split_file
from ..frontend.onnx_fingerprint import onnx_fingerprint
from .relax_fingerprint import constants_of, relax_fingerprint
from .tensors import tensor_bytes


@dataclass(frozen=True)
class ModelSource:
    """What identifies a model, and gives its weights.

    Attributes
    ----------
    digests : of the bytes of its initializers, or of a Relax module's constants.
    initializer : the bytes of one, by its number.
    unchanged : whether it still is what the fingerprint was taken of; a file can be written to meanwhile.
    """

    fingerprint: str
    digests: tuple[bytes, ...]
    initializer: Callable[[int], Buffer]
    unchanged: Callable[[], bool] = lambda: True


def model_source(model: Any, shapes: Mapping[str, Sequence[int]] | None) -> ModelSource | None:
    """None for what ``compile`` will refuse, and for files that keep their weights in others."""
    if isinstance(model, tvm.IRModule):
        return _of_relax(model)
    if isinstance(model, str | os.PathLike):
        return _of_file(model, shapes)
    return _of_proto(model, shapes) if hasattr(model, "graph") else None


def _of_relax(mod: tvm.IRModule) -> ModelSource:
    payloads = [tensor_bytes(tensor) for tensor in constants_of(mod)]
    digests = tuple(content_digests(payloads))
    return ModelSource(relax_fingerprint(mod, digests), digests, payloads.__getitem__)


def _of_file(path: str | os.PathLike[str], shapes: Mapping[str, Sequence[int]] | None) -> ModelSource | None:
    before = _state(path)
    split = split_file(path)
    if split is None:
        return None
    model, weights = split
    digests = tuple(content_digests(weights))
    fingerprint = onnx_fingerprint(model, digests, shapes)
    return ModelSource(fingerprint, digests, weights.__getitem__, lambda: _state(path) == before)


def _of_proto(model: Any, shapes: Mapping[str, Sequence[int]] | None) -> ModelSource:
    tensors = model.graph.initializer
    digests = tuple(content_digest(tensor.raw_data) for tensor in tensors)  # one copy at a time
    fingerprint = onnx_fingerprint(model, digests, shapes)
    return ModelSource(fingerprint, digests, lambda number: tensors[number].raw_data)


def _state(path: str | os.PathLike[str]) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
