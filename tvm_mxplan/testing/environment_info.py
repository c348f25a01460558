"""Records the environment of a measurement: every benchmark prints it, so that its numbers can be read later.

`environment` reads the machine and the versions of what is installed; it imports none of it. What cannot be
read is None. It names neither the host nor any path.
"""

from __future__ import annotations

import ctypes
import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PACKAGES = ("tvm_mxplan", "apache-tvm", "apache-tvm-ffi", "onnx", "onnxruntime", "openvino", "torch", "numpy")
ISA = (
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "sve",
)
"""The CPU flags, as Linux names them, that decide which kernels a library takes."""
SETTINGS = ("GLIBC_TUNABLES", "GOMP_", "KMP_", "MALLOC_", "ONEDNN_", "OMP_", "TVM_")
"""Beginnings of the environment variables that change what the engines do."""
ONEDNN_LIBRARY = "libdnnl.so.3"


def environment(repository: Path | None = None) -> dict[str, object]:
    """One flat record; ``repository``, a git checkout, adds its commit."""
    record: dict[str, object] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_field("model name") or platform.processor() or None,
        "cpus": os.cpu_count(),
        "cpus allowed": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "isa": " ".join(flag for flag in ISA if flag in (_cpu_field("flags") or "").split()) or None,
        "l2 / l3 cache": _caches(),
        "memory GiB": _memory_gib(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge pages": _chosen(_read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "load average": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}",
        "python": platform.python_version(),
        "settings": _settings(),
        "oneDNN": onednn_version(),
    }
    record.update({package: _version(package) for package in PACKAGES})
    if repository is not None:
        record["commit"] = _commit(repository)
    return record


def format_environment(record: Mapping[str, object]) -> str:
    """The record as a markdown list, without what could not be read."""
    return "\n".join(f"- {key}: {value}" for key, value in record.items() if value is not None)


def onednn_version() -> str | None:
    """The version of the oneDNN that this Python's prefix holds, as the library itself tells it."""

    class Version(ctypes.Structure):
        _fields_ = (
            ("major", ctypes.c_int),
            ("minor", ctypes.c_int),
            ("patch", ctypes.c_int),
            ("hash", ctypes.c_char_p),
        )

    library = Path(sys.prefix) / "lib" / ONEDNN_LIBRARY
    try:
        query = ctypes.CDLL(str(library)).dnnl_version
    except (OSError, AttributeError):
        return None
    query.restype = ctypes.POINTER(Version)
    version = query().contents
    return f"{version.major}.{version.minor}.{version.patch}"


def _settings() -> str | None:
    chosen = {name: value for name, value in os.environ.items() if name.startswith(SETTINGS)}
    return " ".join(f"{name}={value}" for name, value in sorted(chosen.items())) or None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit(repository: Path) -> str | None:
    command = ["git", "-C", str(repository), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()


def _cpu_field(name: str) -> str | None:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _caches() -> str | None:
    base = "/sys/devices/system/cpu/cpu0/cache"
    sizes = [_read(f"{base}/index{index}/size") for index in (2, 3)]
    return " / ".join(size or "?" for size in sizes) if any(sizes) else None


def _memory_gib() -> float | None:
    for line in (_read("/proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return round(int(line.split()[1]) / 2**20, 1)
    return None


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _chosen(setting: str | None) -> str | None:
    """``madvise`` of ``always [madvise] never``."""
    return setting.partition("[")[2].partition("]")[0] or None if setting else None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
