"""TVM's tracker and servers in processes of their own, on free ports of this machine; gone when a test ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOST = "127.0.0.1"
KEY = "pi"
_SECONDS = 60.0


@contextmanager
def tracker() -> Iterator[int]:
    """A tracker; its port."""
    port = free_port()
    with _process("tvm.exec.rpc_tracker", port):
        wait_for(lambda: _listens(port))
        yield port


@contextmanager
def server(*flags: str, **environment: str) -> Iterator[tuple[int, subprocess.Popen]]:
    """A server; its port and its process, which leads a group."""
    port = free_port()
    with _process("tvm.exec.rpc_server", port, "--key", KEY, *flags, **environment) as process:
        wait_for(lambda: b"bind to" in Path(process.log).read_bytes())
        yield port, process


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for(condition) -> None:
    """Until something is so; fails after a minute."""
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end, "waited for a minute"
        time.sleep(0.05)
