"""Packs what a GPU machine without network needs into parts, and installs them there.

    scripts/gpu_bundle pack FOLDER [--model FILE ...] [--most MIB]    here, with the extra cuda
    python FOLDER/unpack.py TARGET                                    there
    cd TARGET; scripts/gpu_bundle run RESULTS                         there: answers, then times

Where the GPU machine has another Python, and much of what ours needs, a bundle is for that Python, and small:

    scripts/gpu_bundle pack FOLDER --python 3.12 --there torch numpy onnx ... --compress
    python FOLDER/unpack.py TARGET --beside                           there: stands beside what is installed

A bundle holds wheels of this checkout and of all that it needs with the extras cuda and test, in the versions
that are installed here; the tests, scripts and documents; and models.  What is installed there has no sources
of ours, so it runs what was packed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import lzma
import platform
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import contents, run, unpack
from .parts import PartWriter

MOST_MIB = 60
_FILTERS = (
    {"id": lzma.FILTER_X86},
    {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 256 << 20},
)
"""Most bytes are code for x86, and libraries stand in wheels several times."""


def pack(
    folder: Path,
    files: Iterator[tuple[Path, str]],
    most: int,
    listed: dict[str, object],
    compress: bool = False,
) -> list[Path]:
    """Writes files, by their names in the bundle, as parts into an empty folder; returns all it wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise unpack.BundleError(f"{folder}: not empty; name a folder for the bundle alone")
    writer = PartWriter(folder, most)
    with contextlib.ExitStack() as ends:
        ends.callback(writer.close)
        stream = ends.enter_context(lzma.open(writer, "w", filters=_FILTERS)) if compress else writer
        archive = ends.enter_context(tarfile.open(fileobj=stream, mode="w|"))  # type: ignore[call-overload]
        for path, name in files:
            archive.add(path, name, recursive=False)
    whole = {"python": list(sys.version_info[:2]), **listed, "machine": platform.machine()}
    (folder / unpack.LIST).write_text(json.dumps({**whole, "parts": writer.parts}, indent=1))
    shutil.copy(Path(unpack.__file__), folder / "unpack.py")
    return sorted(folder.iterdir())


def _all_files(wheels: Path, models: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    yield from ((path, f"wheels/{path.name}") for path in sorted(wheels.iterdir()))
    yield from contents.checkout_files()
    yield from ((path, f"models/{path.name}") for path in models)


def _pack(given: argparse.Namespace) -> int:
    missing = [path for path in given.model if not path.is_file()]
    if missing:
        raise unpack.BundleError(f"{missing[0]}: no such file")
    with tempfile.TemporaryDirectory() as wheels:
        try:
            pinned = contents.fetch_wheels(Path(wheels), given.python, given.there)
        except importlib.metadata.PackageNotFoundError as missing:
            raise unpack.BundleError(
                f"{missing.name} is not installed here; run scripts/setup test cuda"
            ) from None
        if given.compress:
            contents.store(Path(wheels))
        listed: dict[str, object] = {"requirements": pinned, "python": list(given.python)}
        files = _all_files(Path(wheels), given.model)
        made = pack(given.folder, files, given.most << 20, listed, given.compress)
    total = sum(path.stat().st_size for path in made)
    print(f"{given.folder}: {len(made)} files, {total / 2**20:,.0f} MiB, each of at most {given.most} MiB")
    print(f"copy them to the GPU machine, and there: python {given.folder.name}/unpack.py TARGET")
    return 0


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/gpu_bundle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing = verbs.add_parser("pack", help="write a bundle")
    packing.add_argument("folder", type=Path, help="where the parts go; empty, or made")
    packing.add_argument("--model", type=Path, nargs="+", default=[], help="files to take along")
    packing.add_argument(
        "--python", type=_version, default=sys.version_info[:2], help="for another one, as 3.12"
    )
    packing.add_argument("--there", nargs="+", default=[], help="distributions that the GPU machine has")
    packing.add_argument("--compress", action="store_true", help="smaller, and slower to pack")
    packing.add_argument("--most", type=int, default=MOST_MIB, metavar="MIB", help="size of a part")
    unpacking = verbs.add_parser("unpack", help="the same as FOLDER/unpack.py")
    unpacking.add_argument("folder", type=Path)
    unpacking.add_argument("target", type=Path)
    running = verbs.add_parser("run", help="run what a GPU machine is there for")
    run.add_arguments(running)
    given = parser.parse_args(arguments)
    if given.verb == "run":
        return run.main(given)
    if given.verb == "unpack":
        return unpack.main([str(given.target), "--from", str(given.folder)])
    try:
        return _pack(given)
    except unpack.BundleError as error:
        print(f"gpu_bundle: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
