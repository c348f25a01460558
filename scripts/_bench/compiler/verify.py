"""The command line of scripts/bench verify: what it takes to verify the kernels of a network.

Each network is compiled three times, each time in a process of its own: with an empty folder, where every
kernel is new; again, where every kernel is known; and with verify=off. "verify" is the time that the report
states, "passes" that of all passes with it; CPU seconds count both processors, and waiting for neither.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm_mxplan.testing.environment_info import environment, format_environment

from ..inputs import encoder

MODELS = ("resnet50", "vgg19", "mobilenet_v2", "densenet121", encoder.NAME)
CACHE = "save_reload"  # writes no compilations, remembers kernels


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status, 1 where a kernel was refused."""
    options = _parse(arguments)
    if options.child:
        print(json.dumps(_compiled(options.models, options.batch, options.child)))
        return 0
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    columns = "new: verify s | CPU s | passes s | known: verify s | passes s | off: passes s"
    print(f"| model | batch | kernels | {columns} |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    refused = 0
    for name in options.models.split(","):
        with tempfile.TemporaryDirectory(prefix="bench_verify_") as folder:
            new, known, off = (_child(name, options.batch, mode, folder) for mode in ("new", "new", "off"))
        refused += new["refused"]
        cells = [str(new["checked"]), *(f"{new[key]:.2f}" for key in ("verify", "cpu", "passes"))]
        cells += [f"{known['verify']:.3f}", f"{known['passes']:.2f}", f"{off['passes']:.2f}"]
        print(f"| {name} | {options.batch} | {' | '.join(cells)} |", flush=True)
    return int(refused > 0)


def _child(name: str, batch: int, mode: str, folder: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "_bench.compiler.verify", "--models", name]
    command += ["--batch", str(batch), "--child", mode]
    variables = {**os.environ, "TVM_MXPLAN_CACHE_DIR": folder}
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=variables).stdout
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def _compiled(name: str, batch: int, mode: str) -> dict[str, Any]:
    """Compile in this process; seconds, and what came of verification."""
    import tvm_mxplan
    from tvm_mxplan.testing import zoo
    from tvm_mxplan.verify.verifier import Verifier

    spent = 0.0
    checked = Verifier.wrong

    def timed(self: Verifier, *arguments: Any) -> Any:
        nonlocal spent
        start = time.process_time()
        try:
            return checked(self, *arguments)
        finally:
            spent += time.process_time() - start

    Verifier.wrong = timed  # type: ignore[method-assign]
    model = encoder.encoder(batch) if name == encoder.NAME else zoo.load(name, batch=batch)
    report = tvm_mxplan.compile(model, options={"verify": mode, "cache": CACHE}).report
    found = report.verification
    seconds = {"cpu": spent, "passes": report.seconds["passes"]}
    if found is None:
        return seconds
    return {**seconds, "checked": found.checked, "refused": len(found.refused), "verify": found.seconds}


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench verify", description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS), help=f"comma-separated ({','.join(MODELS)})")
    parser.add_argument("--batch", type=int, default=1, help="images, or sequences of 128 tokens (1)")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
