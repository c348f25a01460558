"""The files of a bundle: wheels, the tests and scripts of this checkout, models."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from .closure import closure

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("cuda", "test")
WITHOUT = ("nvidia-cutlass-dsl",)
"""Needed by cudnn-frontend's Python alone, half a gigabyte; its C++ is all that is used here."""
WITH = ("cuda-bindings",)
"""The way in which TVM compiles its kernels where a GPU is."""
NOT_RUN = {"apache_tvm": ("tvm/3rdparty/",)}
"""Parts of wheels, by the name of their distribution, which only compiling C++ against TVM reads."""
_BUILDERS = ("setuptools>=77", "wheel")
_PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(39, 16, -1)),
    "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64",
)  # fmt: skip
"""Of wheels, the newest C library first."""
_TAKEN = ("tests", "scripts", "docs", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
"""Parts of the checkout that travel: not the sources, which would stand before the wheel's."""


def requirements(extras: Sequence[str] = EXTRAS, there: Sequence[str] = ()) -> dict[str, str]:
    """Distributions that ours needs with ``extras``, in versions as here, but for those ``there``."""
    wanted = [f"tvm_mxplan[{','.join(extras)}]", *(WITH if "cuda" in extras else ())]
    found = closure(wanted, (*WITHOUT, *there))
    return {name: version for name, version in found.items() if name != "tvm-mxplan"}


def fetch_wheels(folder: Path, python: tuple[int, int], there: Sequence[str] = ()) -> list[str]:
    """Puts wheels of ours and of all it needs into ``folder``; returns what was asked for, pinned.

    Parameters
    ----------
    python : that they are for.
    there : distributions that the GPU machine has.
    """
    pinned = [f"{name}=={version}" for name, version in requirements(there=there).items()]
    version = "".join(map(str, python))
    wanted = ["--python-version", version, "--implementation", "cp"]
    wanted += [word for abi in (f"cp{version}", "abi3", "none") for word in ("--abi", abi)]
    wanted += [word for platform in _PLATFORMS for word in ("--platform", platform)]
    _pip("download", "--no-deps", "--only-binary", ":all:", *wanted, "--dest", str(folder), *pinned)
    build_wheel(folder)
    return pinned


def store(folder: Path) -> None:
    """Writes the wheels of a folder anew, uncompressed: what compresses all of them does better.

    What nothing runs (`NOT_RUN`) stays out.
    """
    for path in sorted(folder.glob("*.whl")):
        stored, left_out = path.with_suffix(".stored"), NOT_RUN.get(path.name.partition("-")[0], ())
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as target:
            for one in source.infolist():
                if one.filename.startswith(left_out):
                    continue
                data = source.read(one)
                if one.filename.endswith(".dist-info/RECORD"):
                    lines = data.decode().splitlines(keepends=True)
                    data = "".join(line for line in lines if not line.startswith(left_out)).encode()
                plain = zipfile.ZipInfo(one.filename, one.date_time)
                plain.external_attr = one.external_attr
                target.writestr(plain, data)
        stored.replace(path)


def build_wheel(folder: Path) -> None:
    """Builds a wheel of this checkout, with cuDNN's planner: an isolated build has no headers for it."""
    with tempfile.TemporaryDirectory() as builders:
        _pip("install", "--target", builders, *_BUILDERS)
        path = os.pathsep.join(filter(None, (builders, os.environ.get("PYTHONPATH"))))
        arguments = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
        _pip("wheel", *arguments, PYTHONPATH=path)
        (made,) = folder.glob("tvm_mxplan-*.whl")
        # Its libraries are no extensions of Python's.
        tags = ("--python-tag", "py3", "--abi-tag", "none", "--remove", str(made))
        command = [sys.executable, "-m", "wheel", "tags", *tags]
        settings = {**os.environ, "PYTHONPATH": path}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=settings)


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
