"""Unpacks a bundle of parts and installs what is in it; needs Python's standard library alone.

    python unpack.py TARGET [--from FOLDER] [--beside]

The parts are read where this file lies.  Each is held against its digest before anything is written.  TARGET
gets the bundle's files and a virtual environment .venv, into which the wheels are installed without network.
With --beside they go into TARGET/site, and .venv/bin/python is this Python with them: for bundles that leave
out what is installed here.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

LIST = "bundle.json"
_CHUNK = 1 << 20
_NEXT = """installed in {target}

  scripts/gpu_bundle run RESULTS      (in {target}: all of the below, answers first)
  {python} -m pytest -m gpu           (in {target}: the tests that need a GPU)
  scripts/bench gpu                   (in {target}: times)
  {python} -m tvm_mxplan.tvmc device-properties -o gpu.json
"""


class BundleError(Exception):
    """Says what of a bundle is missing or damaged."""


class _Parts(io.RawIOBase):
    """Parts, one behind the other, as one file to read."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)
        self._file: io.BufferedReader | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while True:
            if self._file is None:
                if not self._paths:
                    return 0
                self._file = self._paths.pop(0).open("rb")
            count = self._file.readinto(buffer)
            if count:
                return count
            self._file.close()
            self._file = None


def checked(folder: Path) -> tuple[dict[str, object], list[Path]]:
    """The bundle's list and the paths of its parts; BundleError where one is not what was packed."""
    try:
        listed = json.loads((folder / LIST).read_bytes())
        parts = [(str(one["name"]), int(one["bytes"]), str(one["sha256"])) for one in listed["parts"]]
        listed["python"] = [int(number) for number in listed["python"]]
    except OSError as error:
        raise BundleError(f"{folder / LIST}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise BundleError(f"{folder / LIST}: damaged ({error}); copy it again") from error
    for name, size, digest in parts:
        path = folder / name
        if Path(name).name != name:
            raise BundleError(f"{folder / LIST}: damaged (a part {name!r}); copy it again")
        if not path.is_file():
            raise BundleError(f"{path}: missing, {len(parts)} parts belong together; copy it again")
        if path.stat().st_size != size or _digest(path) != digest:
            raise BundleError(f"{path}: damaged, expected {size:,} bytes of another digest; copy it again")
    return listed, [folder / name for name, _, _ in parts]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def unpack(folder: Path, target: Path) -> dict[str, object]:
    """Writes the files of the bundle in ``folder`` below ``target``; returns the bundle's list."""
    listed, paths = checked(folder)
    if sys.version_info[:2] != tuple(listed["python"]):  # type: ignore[arg-type]
        wanted = ".".join(map(str, listed["python"]))  # type: ignore[arg-type]
        raise BundleError(f"{folder}: its wheels are for Python {wanted}; run this with it")
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BufferedReader(_Parts(paths), _CHUNK), mode="r|*") as archive:
        for member in archive:
            place = (target / member.name).resolve()
            if not member.isreg() or not place.is_relative_to(target.resolve()):
                raise BundleError(f"{folder}: holds {member.name!r}, which is no file below its target")
            place.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None
            with place.open("wb") as file:
                while chunk := content.read(_CHUNK):
                    file.write(chunk)
            place.chmod(member.mode & 0o755)
    return listed


def install(target: Path, python: str) -> Path:
    """Makes ``.venv`` in an unpacked bundle and installs its wheels; returns the environment's Python."""
    subprocess.run([python, "-m", "venv", str(target / ".venv")], check=True)
    inside = target / ".venv" / "bin" / "python"
    wheels = sorted(map(str, (target / "wheels").glob("*.whl")))
    pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-index", "--no-deps", *wheels], check=True)
    return inside


def install_beside(target: Path, python: str) -> Path:
    """Installs the wheels beside what a Python has; returns a program that is that Python with both."""
    site, inside = target.resolve() / "site", target.resolve() / ".venv" / "bin" / "python"
    wheels = sorted(map(str, (target / "wheels").glob("*.whl")))
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--target", str(site), *wheels], check=True)
    for wheel in wheels:
        _add_data(Path(wheel), site)
    paths = {"PYTHONPATH": site, "LD_LIBRARY_PATH": site / "lib"}
    settings = " ".join(f'{name}="{path}${{{name}:+:${name}}}"' for name, path in paths.items())
    inside.parent.mkdir(parents=True)
    inside.write_text(f'#!/bin/sh\n{settings} exec "{python}" "$@"\n')
    inside.chmod(0o755)
    return inside


def _add_data(wheel: Path, site: Path) -> None:
    """Writes the files that a wheel wants below the environment's root: of a folder ``lib``, pip has none."""
    with zipfile.ZipFile(wheel) as archive:
        for one in archive.infolist():
            top, _, inner = one.filename.partition("/data/")
            if top.endswith(".data") and "/" not in top and inner and not one.is_dir():
                one.filename = inner
                archive.extract(one, site)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Unpacks a bundle and installs what is in it.")
    parser.add_argument("target", type=Path, help="the folder that gets the files and an environment")
    parser.add_argument("--from", dest="folder", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--python", default=sys.executable, help="that the environment is made of")
    parser.add_argument("--beside", action="store_true", help="add to what that Python has")
    given = parser.parse_args(arguments)
    try:
        unpack(given.folder, given.target)
        python = (install_beside if given.beside else install)(given.target, given.python)
    except BundleError as error:
        print(f"unpack: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"unpack: {' '.join(error.cmd[:4])} ... ended with status {error.returncode}", file=sys.stderr)
        return 1
    print(_NEXT.format(target=given.target, python=python))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
