"""``Connection``: a server of TVM's RPC that is asked by name; what goes wrong is one line with a way out."""

from __future__ import annotations

import json
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import tvm
from tvm import rpc
from tvm.rpc import base

from .. import errors
from ..configuration import distribution_version
from ..errors import RemoteError
from .address import Remote
from .server import PREFIX

_PATIENCE = 10.0
"""Seconds for a tracker to answer that it is one."""


class Connection:
    """A session with a server; others wait until it is closed.

    Raises
    ------
    RemoteError : nobody answers there, no server has the key, or it has no tvm_mxplan.
    """

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self._functions: dict[str, Any] = {}
        try:
            self._session = _tracked(remote) if remote.tracker else rpc.connect(*remote.address, remote.key)
        except (OSError, RuntimeError) as error:
            tool, role = ("rpc_tracker", "tracker") if remote.tracker else ("rpc_server", "server")
            raise RemoteError(
                f"{remote}: cannot be reached ({_why(error)}); expected a {role} of TVM's there, as "
                f"python -m tvm.exec.{tool} starts one"
            ) from error

    def ask(self, name: str, *arguments: str | bytes | int) -> Any:
        """Calls the server's function ``name``; errors of ours arrive as what they were raised as."""
        return self.told(lambda: self._function(name)(*arguments))

    def told(self, call: Callable[[], Any]) -> Any:
        """The answer of a call to the server, out of its JSON."""
        with self._reached():
            answer = json.loads(str(call()))
        if "error" in answer:
            raise getattr(errors, answer["error"])(f"{self.remote}: {answer['message']}")
        return answer["value"]

    def make(self, name: str, *arguments: str | bytes | int) -> Any:
        """A function that the server's function ``name`` makes, and keeps as long as it is kept here."""
        with self._reached():
            return self._function(name)(*arguments)

    def upload(self, path: Path, name: str) -> None:
        """Put a file into the session's folder, compressed."""
        data = zlib.compress(path.read_bytes(), level=1)
        with self._reached():
            self._session.upload(bytearray(data), name)

    def download(self, name: str) -> bytes:
        """A file of the session's folder."""
        with self._reached():
            return bytes(self._session.download(name))

    def close(self) -> None:
        """Let the server go; it takes the next session then."""
        self._functions.clear()
        if self._session is not None:
            with suppress(RuntimeError):  # it may have gone already
                self._session.get_function("CloseRPCConnection")()
        self._session = None

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            try:
                self._functions[name] = self._session.get_function(PREFIX + name)
            except AttributeError:
                raise RemoteError(
                    f"{self.remote}: its process has no tvm_mxplan that can {name!r}; install tvm_mxplan "
                    f"{distribution_version('tvm_mxplan')} there, and start the server anew"
                ) from None
        return self._functions[name]

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except tvm.error.RPCError as error:
            raise RemoteError(f"{self.remote}: failed over there ({_why(error)})") from error
        except (OSError, RuntimeError) as error:
            raise RemoteError(
                f"{self.remote}: gone in the middle of the work ({_why(error)}); what was measured is kept, "
                "so start the server anew, and run the same again"
            ) from error


@contextmanager
def connection(remote: Remote) -> Iterator[Connection]:
    """A session that ends with the block."""
    made = Connection(remote)
    try:
        yield made
    finally:
        made.close()


def _tracked(remote: Remote) -> Any:
    """A server that the tracker lends; waits where all of that key are lent out."""
    host, port = remote.address
    with socket.create_connection((host, port), _PATIENCE) as probe:  # TVM would try for a minute
        probe.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
        if struct.unpack("<i", base.recvall(probe, 4))[0] != base.RPC_TRACKER_MAGIC:
            raise OSError("the answer is none of a tracker's")
    tracker = rpc.connect_tracker(host, port)
    try:
        keys = {entry["key"].partition(":")[2] for entry in tracker.summary()["server_info"]}
        if remote.key not in keys:
            known = ", ".join(sorted(map(repr, keys))) or "none"
            raise RemoteError(
                f"tracker {host}:{port}: no server with the key {remote.key!r}; it knows {known}; start one: "
                f"python -m tvm.exec.rpc_server --tracker {host}:{port} --key {remote.key}"
            )
        return tracker.request(remote.key, max_retry=1)
    finally:
        tracker.close()


def _why(error: BaseException) -> str:
    """Returns the end of an error's text, which may hold the other machine's traceback."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].rpartition(" is false: ")[2]  # what TVM's checks put before their message
