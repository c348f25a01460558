"""The tables of networks by name, and the names of exported files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .modern import held_back, modern
from .networks import NETWORKS, Network

TABLES: dict[str, Callable[[], Sequence[Network]]] = {
    "small": lambda: NETWORKS,
    "modern": lambda: modern(1),
    "modern_batch8": lambda: modern(8),
    "held_back": lambda: held_back(1),
    "held_back_batch8": lambda: held_back(8),
}


def file_of(network: Network, exporter: str) -> str:
    """The name of an exported file in its table's folder."""
    return f"{network.label}_{exporter}.onnx"
