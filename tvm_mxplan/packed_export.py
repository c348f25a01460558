"""Exporting a compiled model's weights as its primitives want them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .byoc.onednn import library

_REGION = "mxplan_onednn"


@contextmanager
def packed_weights(module: Any) -> Iterator[None]:
    """Meanwhile the regions under a runtime module are exported with packed weights."""
    regions = list(_regions(module))
    try:
        for region in regions:
            library.export_packed(region, True)
        yield
    finally:
        for region in regions:
            library.export_packed(region, False)


def _regions(module: Any) -> Iterator[Any]:
    if module.kind == _REGION:
        yield module
    for child in module.imports:
        yield from _regions(child)
