"""The command line of scripts/torch_models: networks of PyTorch's, compiled and held against PyTorch itself.

Each network is made with random weights, its batch norms calibrated, and tried in a process of its own: as an
exported program and as an ONNX model, each with fixed shapes and with named dimensions, and through
torch.compile.  Needs the extra ``torch_models`` (torch, timm, transformers, onnxscript); networks of other
libraries need ``torch_libraries``.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _shared.trials import answer_of

from tvm_mxplan.testing.environment_info import environment, format_environment

NEEDED = ("torch", "timm", "transformers", "onnxscript")
DOORS = ("exported", "named", "onnx", "onnx named", "torch.compile")
TOLERANCE = 1e-4
_SECONDS = 600


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown.

    Returns
    -------
    status : 0, 1 where a network fails or differs, 2 without torch or for a library that is not known.
    """
    parser = argparse.ArgumentParser(prog="scripts/torch_models", description=__doc__)
    parser.add_argument("--models", default="", help="only those whose names contain this")
    parser.add_argument("--timm", default="", help="models of timm by name, in the place of the catalogue's")
    parser.add_argument("--doors", default=",".join(DOORS), help="some of %(default)s")
    parser.add_argument("--transformers", default="", help="architectures of transformers by name, or all")
    parser.add_argument(
        "--libraries", default="", help="small networks of other libraries by their names, or all"
    )
    parser.add_argument(
        "--keep", default="", metavar="FOLDER", help="ONNX models and their inputs, for scripts/bench onnx"
    )
    options = parser.parse_args(arguments)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{', '.join(missing)} not installed; pip install '.[torch_models]'", file=sys.stderr)
        return 2
    try:
        names = _names(options)
    except ValueError as error:
        parser.error(str(error))
    print(format_environment(environment(Path(__file__).resolve().parents[2])), file=sys.stderr)
    print("| network | door | error | compiled | regions | work in regions | s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    doors = [door for door in DOORS if door in options.doors.split(",")]
    rows = [_row(name, door, options.keep) for name in names for door in doors]
    tried = [row for row in rows if row is not None]
    print(f"\n{sum(tried)} of {len(tried)} compiled and agree.")
    return int(not all(tried))


def _names(options: argparse.Namespace) -> list[str]:
    from .architectures import PREFIX, architecture_names
    from .catalogue import NETWORKS
    from .libraries import library_names

    if options.transformers:
        listed = architecture_names() if options.transformers == "all" else options.transformers.split(",")
        return [PREFIX + name for name in listed if options.models in name]
    if options.libraries:
        return [name for name in library_names(options.libraries) if options.models in name]
    if options.timm:
        return list(options.timm.split(","))
    return [network.name for network in NETWORKS if options.models in network.name]


def _row(name: str, door: str, folder: str) -> bool | None:
    """Print a network's row; whether it compiled and its results agree, None where it was not made."""
    command = [sys.executable, "-m", "_torch.trial", name, door, folder]
    found = answer_of(command, _SECONDS)
    if isinstance(found, str):
        print(f"| {name} | {door} | {found} |", flush=True)
        return False
    if "not_made" in found:
        print(f"| {name} | {door} | not made: {found['not_made']} |", flush=True)
        return None
    print(f"| {name} | {door} | {' | '.join(cells(found))} |", flush=True)
    return agrees(found)


def cells(found: dict[str, Any]) -> list[str]:
    """Formats the results of a trial as the cells of a row."""
    share = "" if found["share"] is None else f"{100 * found['share']:.1f} %"
    return [
        f"{found['error']:.1e}",
        str(found["executables"]),
        str(found["regions"]),
        share,
        f"{found['seconds']:.0f}",
    ]


def agrees(found: dict[str, Any]) -> bool:
    """Whether something was compiled, ran in regions, and gave PyTorch's results."""
    return bool(found["error"] <= TOLERANCE and found["executables"] > 0 and found["regions"] > 0)


if __name__ == "__main__":
    sys.exit(main())
