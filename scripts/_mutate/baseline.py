"""The tests that run a line: found on the code as it is, kept in ``build/mutate`` until that changes."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .mutants import Mutant
from .server import Server
from .tree import ROOT, module_of, sources

KEPT = ROOT / "build" / "mutate"
_LIMIT = 600.0  # seconds for one file of tests


@dataclass(frozen=True)
class Selected:
    """Tests that run a mutant's line: file by file, those of its own name first, the quickest of each first.

    Attributes
    ----------
    seconds : that they take on the code as it is.
    left_out : how many more there are, beyond the limit of time.
    """

    tests: tuple[str, ...]
    seconds: float
    left_out: int


class Baseline:
    """Tests of some files with the lines that they run.

    Parameters
    ----------
    named : source files that a file of tests imports itself.
    """

    def __init__(
        self,
        observed: Mapping[str, dict[str, Any]],
        named: Callable[[str], Collection[str]] = lambda test: (),
    ) -> None:
        self._observed, self._named = observed, named

    def select(self, mutant: Mutant, files: Sequence[str], limit: float) -> Selected:
        """Tests of ``files`` that run the mutant's line.

        For what runs on import those that run any line of the module, and all of files that name it; where
        there is none, all of the first file that has it imported.
        """
        chosen: list[tuple[float, str, int]] = []
        for at, file in enumerate(files):
            seen = self._observed[file]
            shared = seen["shared"].get(mutant.path, ())
            always = mutant.line in shared or (not mutant.line and mutant.path in seen["imported"])
            named = not mutant.line and mutant.path in self._named(file)
            for test, ran in seen["tests"].items():
                lines = ran["lines"].get(mutant.path, ())
                if named or mutant.line in lines or (always and (lines or shared)):
                    chosen.append((ran["seconds"], test, at))
        if not chosen and not mutant.line:
            importing = [one for file in files if mutant.path in (one := self._observed[file])["imported"]]
            chosen = [
                (ran["seconds"], test, 0) for one in importing[:1] for test, ran in one["tests"].items()
            ]
        chosen.sort()
        total, within = 0.0, 0
        for seconds, _, _ in chosen:
            if within and total + seconds > limit:
                break
            total, within = total + seconds, within + 1
        tests = sorted(chosen[:within], key=lambda one: one[2])
        return Selected(tuple(test for _, test, _ in tests), total, len(chosen) - within)


class Observations(Mapping[str, dict[str, Any]]):
    """Lines that tests run, by file of tests: each file is run once, when it is first asked for.

    Tests that fail on the code as it is are left out.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._files = sources(["*"])
        self._texts = {file: (ROOT / file).read_text() for file in self._files}
        self._helpers = _digest(path.read_text() for path in _helpers())
        self._seen: dict[str, dict[str, Any]] = {}
        KEPT.mkdir(parents=True, exist_ok=True)

    def __getitem__(self, test: str) -> dict[str, Any]:
        if test not in self._seen:
            self._seen[test] = self._observed(test)
            for failed in self._seen[test]["failed"]:
                print(f"mutate: {failed} fails before anything is changed and is left out", file=sys.stderr)
        return self._seen[test]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def _observed(self, test: str) -> dict[str, Any]:
        kept = KEPT / f"{test.replace('/', '.')}.json"
        own = _digest([self._helpers, (ROOT / test).read_text()])
        found = json.loads(kept.read_text()) if kept.exists() else {}
        if found.get("own") == own and found["sources"] == what_counts(self._texts, found):
            return found
        print(f"mutate: {test} as it is", file=sys.stderr)
        result = self._server.record(test, self._files, _LIMIT)
        if isinstance(result, str):
            raise SystemExit(f"mutate: the tests have to run before anything is changed: {result}")
        found = {"own": own, "sources": what_counts(self._texts, result), **result}
        part = kept.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.replace(kept)
        return found


@functools.cache
def named_in(test: str) -> frozenset[str]:
    """Source files that a file of tests imports itself."""
    names = set()
    for node in ast.walk(ast.parse((ROOT / test).read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(file for file in sources(["*"]) if module_of(file) in names)


def what_counts(texts: Mapping[str, str], observed: Mapping[str, Any]) -> dict[str, str]:
    """Returns what an observation rests on: digests of the files that the tests imported.

    Of files of which they ran no function, what runs on import is all that counts.
    """
    ran = {*observed["shared"], *(file for test in observed["tests"].values() for file in test["lines"])}
    return {
        file: _digest([texts[file] if file in ran else _on_import(texts[file])])
        for file in observed["imported"]
        if file in texts
    }


@functools.cache
def _on_import(text: str) -> str:
    """The program without what stands in functions."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Pass()]
    return ast.dump(tree)


def _helpers() -> list[Path]:
    return [path for path in sorted((ROOT / "tests").rglob("*.py")) if not path.name.startswith("test_")]


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    return digest.hexdigest()
