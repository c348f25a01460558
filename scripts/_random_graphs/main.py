"""The command line of scripts/random_graphs: random ONNX graphs, ours against onnxruntime.

Graphs are chains and nets of convolutions, pools, norms, functions, residual sums, concatenations, splits,
views, products, attention, recurrent layers, reductions and choices, with odd channels, groups, dilation,
paddings on one side and batches of 1 to 3; scripts/_random_graphs/drawing.py lists the moves. A case follows
from mode, seed and number alone. Each runs in a worker process; one that ends it is a finding, and another
process does the rest. What fails is made smaller and kept in a folder.

Modes: f32; bf16, which is the option precision; sym, with a named batch and several of them; host, for the
target "dnnl, host, llvm"; int8, quantised models. scripts/_random_graphs/judging.py says when a result is
right. Exit status 1: something failed, or nothing was offloaded in more than one case in twenty.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
from _shared.workers import Worker, started

from .drawing import MODES, draw
from .shrinking import shrink
from .trial import write

FINDINGS = ("wrong", "error", "crash", "timeout")
_COLUMNS = (
    "mode", "seed", "graphs", "pass", "by ONNX's reference", "dull", "nothing offloaded", "failed", "regions",
    "steps", "of the mode",
)  # fmt: skip
_SECONDS = 300.0
_BARE = 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases and print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    status = 0
    rows = []
    for mode in options.mode.split(","):
        answers = list(_swept(mode, options))
        rows.append(_row(mode, options, answers))
        status |= int(not _is_good(answers))
    print(f"| {' | '.join(_COLUMNS)} |")
    print("| --- |" + " ---: |" * (len(_COLUMNS) - 1))
    print("\n".join(rows))
    return status


def cases(
    mode: str, seed: int, numbers: Sequence[int], timeout: float = _SECONDS
) -> Iterator[dict[str, Any]]:
    """Outcomes of cases, in their order, each with its number."""
    with _worker(timeout) as worker:
        for number in numbers:
            answer = worker.answer(json.dumps({"mode": mode, "seed": seed, "number": number}))
            yield {"number": number, **answer}


def _worker(timeout: float) -> Worker:
    settings = {
        **os.environ,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "TVM_NUM_THREADS": "1",
    }
    return Worker(lambda: started("_random_graphs.trial", (), settings), timeout)


def _swept(mode: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    deadline = time.monotonic() + options.seconds
    for answer in cases(mode, options.seed, range(options.first, options.first + options.count)):
        if answer["status"] in FINDINGS:
            _tell(mode, options, answer)
        elif options.verbose:
            print(f"{mode} {answer}", file=sys.stderr, flush=True)
        yield answer
        if time.monotonic() > deadline:
            return


def _tell(mode: str, options: argparse.Namespace, answer: dict[str, Any]) -> None:
    """Prints a finding, made smaller, and keeps it."""
    name = f"{mode}_{options.seed}_{answer['number']}"
    print(f"{name}: {answer['status']}: {answer['reason']}", flush=True)
    case = draw(mode, options.seed, answer["number"])
    if not options.no_shrink:
        with _worker(_SECONDS) as worker:
            case, answer = shrink(case, mode, answer, worker.answer)  # type: ignore[assignment]
    folder = options.folder / name
    write(case, folder)
    print(f"    {answer['reason']}\n    {folder}: {case.name}")
    print("".join(f"    {line}\n" for line in pictured(case.model)), end="", flush=True)


def pictured(model: onnx.ModelProto) -> Iterator[str]:
    """A line for each node, with attributes and the shapes of constants and inputs."""
    shapes = {tensor.name: f"{list(tensor.dims)}" for tensor in model.graph.initializer}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        shapes[value.name] = f"{[dim.dim_param or dim.dim_value for dim in dims]}"
    for node in model.graph.node:
        read = ", ".join(f"{name}{shapes.get(name, '')}" for name in node.input)
        written = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        yield f"{', '.join(node.output)} = {node.op_type}({read}) {written or ''}".rstrip()


def _is_good(answers: Sequence[dict[str, Any]]) -> bool:
    counts = Counter(answer["status"] for answer in answers)
    run = sum(counts.values()) - counts["dull"]
    return not any(counts[one] for one in FINDINGS) and counts["bare"] <= max(1, _BARE * run) < run


def _row(mode: str, options: argparse.Namespace, answers: Sequence[dict[str, Any]]) -> str:
    counts = Counter(answer["status"] for answer in answers)
    failed = sum(counts[one] for one in FINDINGS)
    sums = [sum(answer.get(name, 0) for answer in answers) for name in ("regions", "steps", "special")]
    apart = sum(answer.get("apart", 0) for answer in answers)
    if not sums[2]:
        print(f"{mode}: no step is what the mode is about; the processor may have no instructions for it")
    cells = [
        mode,
        options.seed,
        len(answers),
        counts["pass"],
        apart,
        counts["dull"],
        counts["bare"],
        failed,
        *sums,
    ]
    if options.kinds:
        kinds: Counter[str] = Counter()
        for answer in answers:
            kinds.update(answer.get("kinds", {}))
        print(f"{mode}: " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    return f"| {' | '.join(map(str, cells))} |"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="random_graphs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--mode", default=",".join(MODES), help="comma-separated (%(default)s)")
    add("--count", type=int, default=100, help="graphs of each mode (%(default)s)")
    add("--seed", type=int, default=0, help="of all graphs (%(default)s)")
    add("--first", type=int, default=0, help="number of the first graph (%(default)s)")
    add("--seconds", type=float, default=1e9, help="at most for each mode")
    add("--folder", type=Path, default=Path("random_graphs_failed"), help="of what fails (%(default)s)")
    add("--no-shrink", action="store_true", help="keep what fails as it was drawn")
    add("--kinds", action="store_true", help="also count the steps of each kind")
    add("--verbose", action="store_true", help="print every outcome")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
