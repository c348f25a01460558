"""The command line of scripts/mutate: small mistakes in the Python code, and which of them tests notice.

Each mistake is one edit (scripts/_mutate/rules.py has the kinds). It is made in memory, in a process forked
for it, which runs the tests that mirror the file (scripts/_mutate/tree.py says which) as far as they run the
line, quickest first, until one fails. Slow tests and those that hold times are left out. No file of the tree
changes. Edits that change nothing are listed with reasons in scripts/_mutate/equivalent.txt.

    scripts/mutate 'passes/memory/*' --sample 6 --seed 1
    scripts/mutate tvm_mxplan/core/program/codec.py --all --json mutants.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from . import equivalent
from .baseline import KEPT, Baseline, Observations, named_in
from .mutants import Mutant
from .rules import is_program, mutants_of
from .server import Server
from .tree import ROOT, named_tests_of, sources, tests_of


@dataclass(frozen=True)
class Tried:
    """One mutant and what came of it.

    Attributes
    ----------
    noticed : whether a test failed.
    why : what failed, or why nothing could.
    left_out : tests that run the line but were beyond the limit of time.
    diff : the edit, where it was not noticed.
    """

    mutant: Mutant
    noticed: bool
    why: str
    seconds: float
    tests: int = 0
    left_out: int = 0
    diff: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table and the edits that nothing noticed; 0 unless ``--at-least`` is missed."""
    options = _parse(arguments)
    files = sources(options.files)
    skipped = set(sources(options.skip))
    taken = some([file for file in files if file not in skipped], options.share, options.seed)
    if options.minutes is not None:
        random.Random(f"{options.seed} order").shuffle(taken)
    texts = {file: (ROOT / file).read_text() for file in taken}
    known = equivalent.read(equivalent.LIST.read_text())
    mutants = [
        mutant
        for file, text in texts.items()
        for mutant in sample(file, text, known, None if options.all else options.sample, options.seed)
    ]
    print(f"mutate: {len(mutants)} mutants of {len(texts)} files, seed {options.seed}", file=sys.stderr)
    if options.list:
        print("\n".join(f"{_where(mutant)} {mutant.kind}: {mutant.change}" for mutant in mutants))
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    begin = time.monotonic()
    tried: list[Tried] = []
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        server = Server(Path(folder), KEPT / "code")
        baseline = Baseline(Observations(server), named_in)
        for file, found in itertools.groupby(mutants, lambda mutant: mutant.path):
            if options.minutes is not None and time.monotonic() - begin > 60 * options.minutes:
                break
            named, tests = named_tests_of(file, options.without), tests_of(file, options.without)
            rounds = (named, [test for test in tests if test not in named])
            for mutant in found:
                tried.append(_try(server, baseline, mutant, texts[file], rounds, options.limit))
            if options.json:
                write_json(options.json, options.seed, tried)
    if len(tried) < len(mutants):
        print(f"mutate: {len(mutants) - len(tried)} mutants were left out: time was up", file=sys.stderr)
    table = summary(tried)
    print("\n\n".join(one.diff for one in tried if not one.noticed))
    print("\n".join(table))
    print(f"\nSeed {options.seed}, {(time.monotonic() - begin) / 60:.0f} minutes.")
    noticed = sum(one.noticed for one in tried)
    return int(100 * noticed < options.at_least * len(tried))


def some(files: Sequence[str], share: float, seed: int) -> list[str]:
    """A share of the files, at random, in their order."""
    taken = random.Random(f"{seed} files").sample(range(len(files)), round(share * len(files)))
    return [files[at] for at in sorted(taken)]


def sample(
    file: str, text: str, known: Iterable[equivalent.Equivalent], count: int | None, seed: int
) -> list[Mutant]:
    """Mutants of a file, ``count`` of them or all: kinds in turns, each at random, none listed as idle."""
    chance = random.Random(f"{seed} {file}")
    kinds: dict[str, list[Mutant]] = {}
    for mutant in mutants_of(file, text):
        if not any(one.names(mutant) for one in known):
            kinds.setdefault(mutant.kind, []).append(mutant)
    turns = [kinds[kind] for kind in sorted(kinds)]
    chance.shuffle(turns)
    for mutants in turns:
        chance.shuffle(mutants)
    chosen: list[Mutant] = []
    while any(turns) and (count is None or len(chosen) < count):
        for mutants in turns:
            while mutants and (count is None or len(chosen) < count):
                mutant = mutants.pop()
                if is_program(mutant, text):
                    chosen.append(mutant)
                    break
    return sorted(chosen, key=lambda mutant: (mutant.begin, mutant.end, mutant.after))


def _try(
    server: Server,
    baseline: Baseline,
    mutant: Mutant,
    text: str,
    rounds: Sequence[Sequence[str]],
    limit: float,
) -> Tried:
    """Run files of tests round by round, until one of their tests fails or ``limit`` seconds are spent."""
    noticed, why, taken, count, left_out = False, "no test that mirrors the file runs the line", 0.0, 0, 0
    for tests in rounds:
        selected = baseline.select(mutant, tests, limit)
        left_out += selected.left_out
        if selected.tests and limit > 0:
            ended = server.test(mutant.path, mutant.apply(text), selected.tests, 10 + 4 * selected.seconds)
            noticed, why = ended.status not in (0, 5), ended.reason
            taken, count, limit = taken + ended.seconds, count + len(selected.tests), limit - selected.seconds
        if noticed:
            break
    diff = "" if noticed else mutant.diff(text)
    verdict = "noticed" if noticed else "NOT NOTICED"
    print(f"mutate: {_where(mutant)} {mutant.change[:90]}: {verdict} ({taken:.1f} s)", file=sys.stderr)
    return Tried(mutant, noticed, why, taken, count, left_out, diff)


def _where(mutant: Mutant) -> str:
    return f"{mutant.path}:{mutant.line or mutant.function or 'module'}"


def summary(tried: Sequence[Tried]) -> list[str]:
    """A table in Markdown: for each folder how many there were and how many were noticed, and the time."""
    folders: dict[str, list[Tried]] = {}
    for one in tried:
        folders.setdefault(str(Path(one.mutant.path).parent), []).append(one)
    rows = [_row(folder, found) for folder, found in sorted(folders.items())]
    rows += [_row("all", tried)] if len(rows) > 1 else []
    return ["| folder | mutants | noticed | rate | processor s |", "| --- |" + " ---: |" * 4, *rows]


def _row(name: str, tried: Sequence[Tried]) -> str:
    noticed, seconds = sum(one.noticed for one in tried), sum(one.seconds for one in tried)
    return f"| {name} | {len(tried)} | {noticed} | {noticed / len(tried):.0%} | {seconds:.0f} |"


def write_json(path: Path, seed: int, tried: Sequence[Tried]) -> None:
    """Everything that was tried, with the diffs of what was not noticed."""
    document: Mapping[str, object] = {"seed": seed, "tried": [asdict(one) for one in tried]}
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(document, indent=1))
    part.replace(path)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", help="files, folders, or patterns, from the root of the tree")
    parser.add_argument("--skip", nargs="*", default=[], help="files, folders, or patterns to leave out")
    parser.add_argument("--without", nargs="*", default=[], help="tests to leave out: files or patterns")
    parser.add_argument("--sample", type=int, default=6, help="mutants of each file (6)")
    parser.add_argument("--all", action="store_true", help="all mutants of each file")
    parser.add_argument("--share", type=float, default=1.0, help="of the files, at random (1.0)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of tests for one mutant (60)")
    parser.add_argument(
        "--minutes", type=float, help="take files in a random order, and none any more after that time"
    )
    parser.add_argument("--at-least", type=float, default=0.0, help="per cent that have to be noticed (0)")
    parser.add_argument("--json", type=Path, help="write what was tried to a file")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
