"""Exporting a compiled model's weights, plain or as its primitives want them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..byoc import registry
from ..byoc.region_module import modules_under


@contextmanager
def exported_weights(module: Any, packed: bool) -> Iterator[None]:
    """Meanwhile the regions under a runtime module are exported so; what is made for that goes afterwards."""
    found = [(registry.engine_of(one), one) for one in modules_under(module)]
    regions = [(engine, one) for engine, one in found if engine is not None]
    try:
        for engine, region in regions:
            engine.export_packed(region, packed)
        yield
    finally:
        for engine, region in regions:
            engine.export_packed(region, False)
