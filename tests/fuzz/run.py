"""Feeds changed files to everything that reads region programs, and says how many each was fed.

    python tests/fuzz/run.py SECONDS [--seed N] [--targets bytes programs codec choices records replay]

``bytes`` and ``programs`` are the C++ programs of tests/cpp, built with the address and undefined-behaviour
sanitizers: damaged bytes to the decoders, and changed programs that are run where they are taken.  The others
are Python's readers.  Each target has SECONDS and a process of its own; the status is 1 where one found
something, and the seed and the number of the input say which.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cpp")]

COMPILED = {"bytes": "fuzz_bytes", "programs": "fuzz_programs"}
PYTHON = ("codec", "choices", "records", "replay")
SANITIZERS = "address,undefined"


def main(arguments: list[str] | None = None) -> int:
    """Run the targets; 1 if one found something."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seconds", type=float, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", nargs="+", choices=[*COMPILED, *PYTHON], default=[*COMPILED, *PYTHON])
    parser.add_argument("--build", type=Path, help="folder of the programs that were built, or are to be")
    parser.add_argument("--inputs", type=int, help="to one of Python's readers, in place of SECONDS")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        return _run_python(given.one, given.seconds, given.seed, given.inputs)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.build or Path(scratch)
        status = 0
        for target in given.targets:
            status |= _run(target, given.seconds, given.seed, folder)
    return status


def _run(target: str, seconds: float, seed: int, folder: Path) -> int:
    """One target in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        if target in COMPILED:
            command = [*_compiled(target, folder), str(seconds), str(seed), *_seed_files(Path(scratch))]
        else:
            command = [sys.executable, str(HERE / "run.py"), str(seconds)]
            command += ["--seed", str(seed), "--one", target]
        answer = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
        said = answer.stdout.strip()
        if answer.returncode == 0:
            print(f"{target}: {said}; seed {seed}", flush=True)
            return 0
        round_file = Path(scratch) / "round"
        number = int.from_bytes(round_file.read_bytes()[:8], "little") if round_file.exists() else "?"
        print(f"{target}: FOUND by input {number} of seed {seed} (status {answer.returncode})")
        print(said + answer.stderr[-8000:], flush=True)
        return 1


def _compiled(target: str, folder: Path) -> list[str]:
    from sanitized import build

    program = folder / COMPILED[target]
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        build(folder, list(COMPILED.values()), SANITIZERS)
    return [str(program.resolve())]


def _seed_files(folder: Path) -> list[str]:
    from seeds import containers

    paths = [folder / f"seed{at}" for at in range(len(containers()))]
    for path, data in zip(paths, containers(), strict=True):
        path.write_bytes(data)
    return [str(path) for path in paths]


def _run_python(target: str, seconds: float, seed: int, inputs: int | None = None) -> int:
    from targets import TARGETS

    attempt = TARGETS[target]()
    taken = number = 0
    with open("round", "wb", buffering=0) as current:
        end = time.monotonic() + seconds
        while number < inputs if inputs is not None else time.monotonic() < end:
            current.seek(0)
            current.write(number.to_bytes(8, "little"))
            try:
                taken += attempt(random.Random(f"{seed} {number}"))
            except Exception:
                traceback.print_exc()
                return 1
            number += 1
    print(f"{number} inputs: {number - taken} refused, {taken} taken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
