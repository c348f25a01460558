"""The tables of networks by name, and the names of exported files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .families import families
from .modern import held_back, modern, recurrent
from .networks import NETWORKS, Network

ZOOS: dict[str, tuple[Callable[[int], tuple[Network, ...]], tuple[int, ...]]] = {
    "modern": (modern, (1, 8)),
    "held_back": (held_back, (1, 8)),
    "recurrent": (recurrent, (1, 16)),
    "families": (families, (1,)),
}
"""The networks of a batch, and the batches that are exported."""


def table_of(zoo: str, batch: int) -> str:
    """The name of the table of a zoo's networks at one batch."""
    return zoo if batch == 1 else f"{zoo}_batch{batch}"


TABLES: dict[str, Callable[[], Sequence[Network]]] = {"small": lambda: NETWORKS} | {
    table_of(zoo, batch): partial(networks, batch)
    for zoo, (networks, batches) in ZOOS.items()
    for batch in batches
}


def file_of(network: Network, exporter: str) -> str:
    """The name of an exported file in its table's folder."""
    return f"{network.label}_{exporter}.onnx"
