"""The command line of scripts/exports: networks exported from PyTorch by both exporters, ours and onnxruntime.

Networks have random weights and small sizes; batch norms see a few random batches first.  Each is exported by
``torch.onnx.export`` with and without ``dynamo``, compiled, and held against onnxruntime at every size that
stands beside it; onnxruntime's difference between its optimised and its plain graph stands beside ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tvm_mxplan.testing.environment_info import environment, format_environment

from .networks import NETWORKS

_SECONDS = 600
_TOLERANCE = 1e-4
_EXPORTERS = ("new", "old")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status, 1 where a network fails or differs."""
    parser = argparse.ArgumentParser(prog="scripts/exports", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, help="where exported models are kept; a temporary one by default"
    )
    parser.add_argument("--networks", default="", help="only those whose names contain this")
    parser.add_argument(
        "--exporting-python",
        default=sys.executable,
        help="a Python with torch, timm, transformers, onnxscript",
    )
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[2])), file=sys.stderr)
    print("| network | named | exporter | error | onnxruntime's own | regions |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    agreed = dict.fromkeys(_EXPORTERS, 0)
    tried = [at for at, network in enumerate(NETWORKS) if options.networks in network.name]
    with tempfile.TemporaryDirectory(prefix="exports_") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for at in tried:
            for exporter in _EXPORTERS:
                agreed[exporter] += _row(at, exporter, folder, options.exporting_python)
    print(
        f"\nAgree: {', '.join(f'{agreed[name]} of {len(tried)} by the {name} exporter' for name in _EXPORTERS)}."
    )
    return int(any(count < len(tried) for count in agreed.values()))


def _row(at: int, exporter: str, folder: Path, python: str) -> bool:
    """Print one row; whether the results agree."""
    network = NETWORKS[at]
    names = dict.fromkeys(name for dims in network.named.values() for name in dims.values())
    start = f"| {network.name} | {', '.join(names)} | {exporter} |"
    path = folder / f"{network.name}_{exporter}.onnx"
    if not path.exists():
        partial = path.with_suffix(".partial.onnx")
        failure = _failure([python, "-m", "_exports.export", str(at), exporter, str(partial)])[0]
        if failure:
            print(f"{start} not exported: {failure} |", flush=True)
            return False
        partial.rename(path)
    failure, text = _failure([sys.executable, "-m", "_exports.trial", str(at), str(path)])
    if failure:
        print(f"{start} {failure} |", flush=True)
        return False
    found = json.loads(text.splitlines()[-1])
    print(f"{start} {found['error']:.1e} | {found['own']:.1e} | {found['regions']} |", flush=True)
    return bool(found["error"] <= max(_TOLERANCE, 2 * found["own"]))


def _failure(command: Sequence[str]) -> tuple[str, str]:
    """Why a process failed, empty where it did not, and what it printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return f"more than {_SECONDS} s", ""
    if not done.returncode:
        return "", done.stdout
    said = [line for line in done.stderr.splitlines() if line.strip() and "Warning" not in line]
    return (said[-1] if said else f"ended by signal {-done.returncode}")[-300:], ""


if __name__ == "__main__":
    sys.exit(main())
