"""The tests that run a line: found on the code as it is, kept in ``build/mutate`` until that changes."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .mutants import Mutant
from .server import Server
from .tree import PACKAGES, ROOT, sources

KEPT = ROOT / "build" / "mutate"
_LIMIT = 600.0  # seconds for one file of tests


@dataclass(frozen=True)
class Selected:
    """Tests that run a mutant's line, quickest first.

    Attributes
    ----------
    seconds : that they take on the code as it is.
    left_out : how many more there are, beyond the limit of time.
    """

    tests: tuple[str, ...]
    seconds: float
    left_out: int


class Baseline:
    """Tests of some files with the lines that they run."""

    def __init__(self, observed: dict[str, dict[str, Any]]) -> None:
        self._observed = observed

    def select(self, mutant: Mutant, files: Sequence[str], limit: float) -> Selected:
        """Tests of ``files`` that run the mutant's line.

        For what runs on import those that run any line of the module; where none does, as of a module without
        functions, all of the first file that imports it.
        """
        chosen: list[tuple[float, str]] = []
        for file in files:
            seen = self._observed[file]
            shared = seen["shared"].get(mutant.path, ())
            always = mutant.line in shared or (not mutant.line and mutant.path in seen["imported"])
            for test, ran in seen["tests"].items():
                lines = ran["lines"].get(mutant.path, ())
                if mutant.line in lines or (always and (lines or shared)):
                    chosen.append((ran["seconds"], test))
        if not chosen and not mutant.line:
            importing = [one for file in files if mutant.path in (one := self._observed[file])["imported"]]
            chosen = [(ran["seconds"], test) for one in importing[:1] for test, ran in one["tests"].items()]
        chosen.sort()
        total, tests = 0.0, []
        for seconds, test in chosen:
            if tests and total + seconds > limit:
                break
            total += seconds
            tests.append(test)
        return Selected(tuple(tests), total, len(chosen) - len(tests))


def observe(server: Server, tests: Iterable[str]) -> Baseline:
    """Run each of the test files and note the lines; SystemExit where some do not pass as they are."""
    files = sources(["*"])
    state = _digest([ROOT / file for file in files] + _helpers())
    observed: dict[str, dict[str, Any]] = {}
    KEPT.mkdir(parents=True, exist_ok=True)
    for test in dict.fromkeys(tests):
        kept = KEPT / f"{test.replace('/', '.')}.json"
        key = _digest([ROOT / test], state)
        found = json.loads(kept.read_text()) if kept.exists() else {}
        if found.get("key") != key:
            print(f"mutate: {test} as it is", file=sys.stderr)
            result = server.record(test, files, _LIMIT)
            if isinstance(result, str):
                raise SystemExit(f"mutate: the tests have to pass before anything is changed: {result}")
            found = {"key": key, **result}
            part = kept.with_suffix(".part")
            part.write_text(json.dumps(found))
            part.replace(kept)
        observed[test] = found
    return Baseline(observed)


def _helpers() -> list[Path]:
    return [path for path in sorted((ROOT / "tests").rglob("*.py")) if not path.name.startswith("test_")]


def _digest(paths: Iterable[Path], begin: str = "") -> str:
    digest = hashlib.sha256(" ".join([begin, *PACKAGES]).encode())
    for path in paths:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
