"""TVM's tracker and servers in processes of their own, on free ports; gone when a test ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

HOST = "127.0.0.1"
KEY = "pi"


@contextmanager
def tracker() -> Iterator[str]:
    """A tracker; its address."""
    port = free_port()
    with _process("tvm.exec.rpc_tracker", port):
        yield f"{HOST}:{port}"


@contextmanager
def server(*flags: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server with the key KEY; its address and its process, which leads a group."""
    port = free_port()
    with _process("tvm.exec.rpc_server", port, "--key", KEY, *flags, **environment) as process:
        yield f"{HOST}:{port}", process


@contextmanager
def lent(address: str, **environment: str) -> Iterator[None]:
    """A server that a tracker lends."""
    with server("--tracker", address, **environment) as (_, process):
        _wait_for(lambda: KEY in _keys(address), process)
        assert process.poll() is None, f"the server ended with status {process.returncode}"
        yield


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Waits until something is so, or until the process that would make it so has ended."""
    while process.poll() is None and not condition():
        time.sleep(0.02)


@contextmanager
def _process(module: str, port: int, *flags: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", module, "--host", HOST, "--port", str(port), "--port-end", str(port + 1)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, *flags],
            env={**os.environ, **environment},
            start_new_session=True,
            stdout=log,
            stderr=log,
        )
        try:
            _wait_for(lambda: _listens(port), process)
            log.seek(0)
            assert process.poll() is None, log.read().decode()
            yield process
        finally:
            end(process)


def _listens(port: int) -> bool:
    """As the system tells it: to connect would be to take a turn."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return any(row[3] == "0A" and row[1].endswith(f":{port:04X}") for row in rows)


def _keys(address: str) -> set[str]:
    from tvm import rpc

    host, _, port = address.partition(":")
    session = rpc.connect_tracker(host, int(port))
    try:
        return {entry["key"].partition(":")[2] for entry in session.summary()["server_info"]}
    finally:
        session.close()
