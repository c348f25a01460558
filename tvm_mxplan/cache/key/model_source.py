"""A model as the cache sees it: its fingerprint and its initializers' bytes, before anything is imported."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.fingerprint import Buffer, content_digest, content_digests
from ...frontend.onnx_file import keeps_data_elsewhere, skeleton_of, split_file
from ...frontend.onnx_fingerprint import onnx_fingerprint
from ...frontend.stated_inputs import Shape
from ..container import UnusableCache
from ..store import Store
from .known_files import KnownFile, KnownModel, state_of


@dataclass(frozen=True)
class ModelSource:
    """The identity of a model, and its weights.

    Attributes
    ----------
    initializers : by the digests of their bytes, what gives the bytes; a Relax module's constants likewise.
    unchanged : whether it still is what the fingerprint was taken of; a file can be written to meanwhile.
    """

    fingerprint: str
    initializers: Mapping[bytes, Callable[[], Buffer]]
    unchanged: Callable[[], bool] = lambda: True

    def initializer(self, digest: bytes) -> Buffer:
        """The bytes of the initializer with this digest; KeyError if there is none."""
        return self.initializers[digest]()


def model_source(model: Any, shapes: Mapping[str, Shape] | None, store: Store) -> ModelSource | None:
    """None for what ``compile`` will refuse, and for files that keep their weights in others."""
    tvm = sys.modules.get("tvm")
    if tvm is not None and isinstance(model, tvm.IRModule):
        return _of_relax(model)
    if isinstance(model, str | os.PathLike):
        return _of_file(model, shapes, store)
    return _of_proto(model, shapes) if hasattr(model, "graph") else None


def _of_relax(mod: Any) -> ModelSource:
    from ..tensors import tensor_bytes
    from .relax_fingerprint import constants_of, relax_fingerprint

    payloads = [tensor_bytes(tensor) for tensor in constants_of(mod)]
    digests = tuple(content_digests(payloads))
    return ModelSource(relax_fingerprint(mod, digests), _by_digest(digests, payloads.__getitem__))


def _of_file(
    path: str | os.PathLike[str], shapes: Mapping[str, Shape] | None, store: Store
) -> ModelSource | None:
    before = state_of(path)
    known = KnownFile(store, path, before, shapes)
    split = functools.cache(lambda: split_file(path))
    model = known.find()
    if model is None:
        if (parts := split()) is None:
            return None
        skeleton, weights = parts
        digests = tuple(content_digests(weights))
        model = KnownModel(onnx_fingerprint(skeleton, digests, shapes), digests)
        known.keep(model)

    def weight(number: int) -> Buffer:
        if (parts := split()) is None:
            raise UnusableCache("the model's file changed while it was read")
        return parts[1][number]

    initializers = _by_digest(model.digests, weight)
    return ModelSource(model.fingerprint, initializers, lambda: state_of(path) == before)


def _of_proto(model: Any, shapes: Mapping[str, Shape] | None) -> ModelSource:
    skeleton = skeleton_of(model)
    if keeps_data_elsewhere(skeleton):
        raise UnusableCache("the model in memory keeps tensors in other files")
    tensors = model.graph.initializer
    digests = tuple(content_digest(tensor.raw_data) for tensor in tensors)  # one copy at a time
    fingerprint = onnx_fingerprint(skeleton, digests, shapes)
    return ModelSource(fingerprint, _by_digest(digests, lambda number: tensors[number].raw_data))


def _by_digest(digests: Sequence[bytes], get: Callable[[int], Buffer]) -> dict[bytes, Callable[[], Buffer]]:
    return {digest: functools.partial(get, number) for number, digest in enumerate(digests)}
