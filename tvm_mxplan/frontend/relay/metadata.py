"""The JSON section behind Relay's text: ``meta[relay.Constant][3]`` and the like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import InvalidInputError
from .json_nodes import Nodes


@dataclass(frozen=True)
class Metadata:
    """Lists of nodes by their types."""

    nodes: Nodes
    lists: dict[str, list[int]]

    @staticmethod
    def of(text: str, source: str) -> Metadata:
        nodes = Nodes(text, f"{source}: metadata")
        entries = nodes.entries(nodes.root)
        return Metadata(nodes, {str(key): nodes.members(at) for key, at in entries.items()})

    def plain(self, kind: str, index: int, what: str) -> Any:
        """The value of an entry that a text names; ``what`` is what messages call the reference."""
        members = self.lists.get(kind, [])
        if index >= len(members):
            raise InvalidInputError(f"{what} is not in the metadata, which has {len(members)} of that type")
        return self.nodes.plain(members[index])
