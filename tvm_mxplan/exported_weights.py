"""Exporting a compiled model's weights, plain or as its primitives want them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .byoc.onednn import library

_REGION = "mxplan_onednn"


@contextmanager
def exported_weights(module: Any, packed: bool) -> Iterator[None]:
    """Meanwhile the regions under a runtime module are exported so; what is made for that goes afterwards."""
    regions = list(_regions(module))
    try:
        for region in regions:
            library.export_packed(region, packed)
        yield
    finally:
        for region in regions:
            library.export_packed(region, False)


def _regions(module: Any) -> Iterator[Any]:
    if module.kind == _REGION:
        yield module
    for child in module.imports:
        yield from _regions(child)
