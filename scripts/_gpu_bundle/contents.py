"""The files of a bundle: wheels, the tests and scripts of this checkout, models."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from .closure import closure

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("cuda", "test")
WITHOUT = ("nvidia-cutlass-dsl",)
"""Needed by cudnn-frontend's Python alone, half a gigabyte; its C++ is all that is used here."""
WITH = ("cuda-bindings",)
"""The way in which TVM compiles its kernels where a GPU is."""
_BUILDERS = ("setuptools>=77", "wheel")
_TAKEN = ("tests", "scripts", "docs", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
"""Parts of the checkout that travel: not the sources, which would stand before the wheel's."""


def requirements(extras: Sequence[str] = EXTRAS) -> dict[str, str]:
    """Distributions and versions that ours needs with ``extras``, as they are here."""
    wanted = [f"tvm_mxplan[{','.join(extras)}]", *(WITH if "cuda" in extras else ())]
    found = closure(wanted, WITHOUT)
    return {name: version for name, version in found.items() if name != "tvm-mxplan"}


def fetch_wheels(folder: Path, extras: Sequence[str] = EXTRAS) -> list[str]:
    """Puts wheels of ours and of all it needs into ``folder``; returns what was asked for, pinned."""
    pinned = [f"{name}=={version}" for name, version in requirements(extras).items()]
    _pip("download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), *pinned)
    build_wheel(folder)
    return pinned


def build_wheel(folder: Path) -> None:
    """Builds a wheel of this checkout, with cuDNN's planner: an isolated build has no headers for it."""
    with tempfile.TemporaryDirectory() as builders:
        _pip("install", "--target", builders, *_BUILDERS)
        path = os.pathsep.join(filter(None, (builders, os.environ.get("PYTHONPATH"))))
        arguments = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
        _pip("wheel", *arguments, PYTHONPATH=path)


def _pip(verb: str, *arguments: str, **settings: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", verb, *quiet, *arguments]
    subprocess.run(command, check=True, env={**os.environ, **settings})


def checkout_files() -> Iterator[tuple[Path, str]]:
    """Files of the checkout that git knows or would, and their names in the bundle."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *_TAKEN]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    for name in sorted(set(filter(None, names))):
        if (ROOT / name).is_file():
            yield ROOT / name, name
