"""The command line of scripts/exports: networks from PyTorch by both of its exporters, ours and onnxruntime.

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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm_mxplan.testing.environment_info import environment, format_environment

from .networks import NETWORKS
from .tables import file_of

_TOLERANCE = 1e-4
_EXPORTERS = ("new", "old")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status, 1 where a network fails or differs."""
    parser = argparse.ArgumentParser(prog="scripts/exports", description=__doc__)
    parser.add_argument("--folder", type=Path, help="where models are kept; a temporary one by default")
    parser.add_argument("--networks", default="", help="only those whose names contain this")
    parser.add_argument(
        "--exporting-python", default=sys.executable, help="a Python with torch, timm and transformers"
    )
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[2])), file=sys.stderr)
    print("| network | named | exporter | error | onnxruntime's own | regions |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    tried = [at for at, network in enumerate(NETWORKS) if options.networks in network.label]
    items = [f"{at}:{exporter}" for at in tried for exporter in _EXPORTERS]
    with tempfile.TemporaryDirectory(prefix="exports_") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        missing = [item for item in items if not (folder / _file(item)).exists()]
        exported = _each(options.exporting_python, "_exports.export", ("small", str(folder)), missing)
        failed = {item: f"not exported: {found['failure']}" for item, found in exported if found["failure"]}
        agreed = [_row(item, {"failure": why}) for item, why in failed.items()]
        left = [item for item in items if item not in failed]
        agreed += [
            _row(item, found) for item, found in _each(sys.executable, "_exports.trial", (str(folder),), left)
        ]
    counts = Counter(exporter for exporter, good in agreed if good)
    words = [f"{counts[name]} of {len(tried)} by the {name} exporter" for name in _EXPORTERS]
    print(f"\nAgree: {', '.join(words)}.")
    return int(not all(good for _, good in agreed))


def _file(item: str) -> str:
    number, _, exporter = item.partition(":")
    return file_of(NETWORKS[int(number)], exporter)


def _row(item: str, found: Mapping[str, Any]) -> tuple[str, bool]:
    """Print one row; the exporter, and whether the results agree."""
    number, _, exporter = item.partition(":")
    network = NETWORKS[int(number)]
    texts = [name for dims in network.named.values() for name in dims.values()]
    names = dict.fromkeys(name for name in texts if name.isidentifier())
    start = f"| {network.label} | {', '.join(names)} | {exporter} |"
    if found.get("failure"):
        print(f"{start} {found['failure'][-300:]} |", flush=True)
        return exporter, False
    print(f"{start} {found['error']:.1e} | {found['own']:.1e} | {found['regions']} |", flush=True)
    return exporter, bool(found["error"] <= max(_TOLERANCE, 2 * found["own"]))


def _each(
    python: str, module: str, arguments: Sequence[str], items: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a module's result for each item; after one that ends the process, another does the rest."""
    left = list(items)
    while left:
        command = [python, "-m", module, *arguments, *left]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            for line in process.stdout or ():
                if line.startswith("{"):
                    found = json.loads(line)
                    left.remove(found["item"])
                    yield found["item"], found
        if left:
            yield left.pop(0), {"failure": f"the process ended with status {process.returncode}"}


if __name__ == "__main__":
    sys.exit(main())
