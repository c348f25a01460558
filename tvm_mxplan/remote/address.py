"""``Remote``: which machine, by a tracker's key or by its own address."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import InvalidInputError

TRACKER_PORT, SERVER_PORT = 9190, 9090
"""The ports on which TVM's tracker and server listen if they are told nothing."""

_ADDRESS = re.compile(r"(?:\[(?P<six>[^\[\]]+)\]|(?P<name>[^\[\]:\s]+))(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True)
class Remote:
    """A machine that runs TVM's RPC server, with tvm_mxplan installed: ``python -m tvm.exec.rpc_server``.

    A server works for one at a time: whoever comes when it, or all of a tracker's with that key, are at
    work waits.

    Attributes
    ----------
    tracker : ``HOST[:PORT]`` of a tracker, which lends a server that registered under ``key``; port 9190
        unless it says otherwise.
    server : ``HOST[:PORT]`` of a server, in place of a tracker; port 9090 unless it says otherwise.
    key : with a tracker, what servers are called there; with a server, what it was started with, if anything.

    Raises
    ------
    InvalidInputError : neither or both of tracker and server, no key for a tracker, or no such address.
    """

    tracker: str = ""
    server: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if bool(self.tracker) == bool(self.server):
            raise InvalidInputError("remote: expected the address of a tracker, or that of a server")
        if self.tracker and not self.key:
            raise InvalidInputError(
                f"tracker {self.tracker}: no key given; give the one that servers were started with (--key)"
            )
        self.address  # noqa: B018  (a wrong one is told at once)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        text = self.tracker or self.server
        found = _ADDRESS.fullmatch(text)
        default = TRACKER_PORT if self.tracker else SERVER_PORT
        port = int(found["port"] or default) if found else 0
        if not found or not 0 < port < 1 << 16:
            raise InvalidInputError(f"{text!r}: expected HOST or HOST:PORT, as in 192.168.0.7:{default}")
        return found["six"] or found["name"], port

    def __str__(self) -> str:
        host, port = self.address
        whose = "of the tracker" if self.tracker else "at"
        return " ".join(["server", *([repr(self.key)] if self.key else []), whose, f"{host}:{port}"])
