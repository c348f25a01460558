"""The command line of scripts/onnx_nodes: ONNX's test cases on TVM alone, with us, and on others.

A case passes where types, shapes and numbers of all its outputs are those that ONNX states, within the
tolerance that ONNX states.  Each engine has a process of its own; a crash counts and ends nothing.  Status 1
where TVM alone passes a case and we do not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from .cases import KINDS, NETWORKS, Case, all_cases, by_operator
from .engines import installed
from .process import Ending, run_cases

Endings = Mapping[str, Mapping[str, Ending]]
"""By engine, then by case."""

STATUSES = ("pass", "wrong", "error", "crash", "timeout")

LIBRARY_OPERATORS = (
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Clip",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Elu",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "HardSwish",
    "LRN",
    "LayerNormalization",
    "LeakyRelu",
    "MatMul",
    "MaxPool",
    "Mul",
    "Relu",
    "Reshape",
    "Sigmoid",
    "Softmax",
    "Sum",
    "Tanh",
    "Transpose",
)
"""Operators that libraries run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print tables in Markdown; returns the exit status."""
    options = _parse(arguments)
    kinds, engines = options.kinds.split(","), options.engines.split(",")
    cases = _selected(all_cases(kinds), options.only, options.every)
    endings = {engine: dict(_told(engine, kinds, list(cases), options.timeout)) for engine in engines}
    if options.save:
        told = {
            engine: {one.name: [one.status, one.reason] for one in found.values()}
            for engine, found in endings.items()
        }
        options.save.write_text(json.dumps(told, indent=1))
    print(totals(endings))
    print()
    print(library(cases, endings))
    print()
    print(operators(cases, endings))
    missing = lost(endings)
    print(f"\n{len(missing)} cases that TVM alone passes and ours does not")
    for name, reason in missing.items():
        print(f"- {name}: {reason}")
    return 1 if missing else 0


def totals(endings: Endings) -> str:
    """A row for each engine: how many cases ended how."""
    lines = [f"| engine | cases | {' | '.join(STATUSES)} |", f"| --- |{' ---: |' * (len(STATUSES) + 1)}"]
    for engine, found in endings.items():
        counts = Counter(ending.status for ending in found.values())
        cells = [engine, str(len(found)), *(str(counts[status]) for status in STATUSES)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def operators(cases: Mapping[str, Case], endings: Endings) -> str:
    """A row for each operator: how many of its cases each engine passes."""
    lines = [f"| operator | cases | {' | '.join(endings)} |", f"| --- |{' ---: |' * (len(endings) + 1)}"]
    for operator, names in sorted(by_operator(cases).items()):
        passed = [sum(found[name].status == "pass" for name in names) for found in endings.values()]
        lines.append(f"| {operator} | {len(names)} | {' | '.join(map(str, passed))} |")
    return "\n".join(lines)


def library(cases: Mapping[str, Case], endings: Endings) -> str:
    """Counts the cases of library operators, of their expansions and of networks that each engine passes."""
    wanted = {*LIBRARY_OPERATORS, *(name.lower() for name in LIBRARY_OPERATORS), "layer", NETWORKS}
    names = [name for operator, found in by_operator(cases).items() if operator in wanted for name in found]
    lines = [
        f"| library operators and networks | {' | '.join(endings)} |",
        f"| ---: |{' ---: |' * len(endings)}",
    ]
    passed = [sum(found[name].status == "pass" for name in names) for found in endings.values()]
    return "\n".join([*lines, f"| {len(names)} | {' | '.join(map(str, passed))} |"])


def lost(endings: Endings) -> dict[str, str]:
    """Cases that TVM alone passes and we do not, with our reason."""
    if not {"tvm", "ours"} <= endings.keys():
        return {}
    return {
        name: f"{ours.status}: {ours.reason}"
        for name, ours in endings["ours"].items()
        if ours.status != "pass" and endings["tvm"][name].status == "pass"
    }


def _selected(cases: Mapping[str, Case], only: str, every: int) -> dict[str, Case]:
    parts = [part for part in only.split(",") if part]
    named = [name for name in cases if not parts or any(part in name for part in parts)]
    return {name: cases[name] for name in named[::every]}


def _told(
    engine: str, kinds: Sequence[str], names: Sequence[str], timeout: float
) -> Sequence[tuple[str, Ending]]:
    found = []
    for number, ending in enumerate(run_cases(engine, kinds, names, timeout), 1):
        found.append((ending.name, ending))
        if number % 100 == 0:
            print(f"{engine}: {number} of {len(names)}", file=sys.stderr)
    return found


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="onnx_nodes", description=__doc__)
    parser.add_argument("--kinds", default=",".join(KINDS), help="folders of onnx.backend.test (%(default)s)")
    parser.add_argument("--engines", default=",".join(installed()), help="%(default)s")
    parser.add_argument("--only", default="", help="parts of names of cases, separated by commas")
    parser.add_argument("--every", type=int, default=1, help="one case of so many (%(default)s)")
    parser.add_argument("--save", type=Path, help="a file of JSON for every ending and its reason")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for a case (%(default)g)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
