"""The command line of scripts/bench experts: rows by the matrix of their group, beside other ways.

    scripts/bench experts --sizes 64x1024x1536,128x2048x1536 --rows 8,64,1024

Sizes are groups x depth x columns; rows, sorted by group, are spread over them at random. Beside the step:
a product for each group that has rows, made for their number, which nothing knows beforehand; and all rows
by every matrix, which is what a graph has that masks them. Results are held against float64 first; times
are microseconds by the clock, of all in turns, medians. OMP_NUM_THREADS says how many threads.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.one_step import Call, call_of, held, medians_in_turns, one_step

COLUMNS = ("ours", "a product for each group", "all rows by every matrix")
_TOLERANCE = 1e-5


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    ratios = [f"ours / {name}" for name in COLUMNS[1:]]
    print(f"| groups x depth x columns | rows | {' | '.join([*COLUMNS, *ratios])} |")
    print(f"| --- | {' | '.join('---:' for _ in range(2 * len(COLUMNS)))} |")
    for size in options.sizes.split(","):
        groups, depth, columns = (int(number) for number in size.split("x"))
        matrices = np.random.default_rng(0).standard_normal((groups, depth, columns), "float32")
        for rows in (int(number) for number in options.rows.split(",")):
            spent = _medians(matrices, rows, options.rounds)
            cells = [f"{us:.0f}" for us in spent] + [f"{spent[0] / us:.3f}" for us in spent[1:]]
            print(f"| {size} | {rows} | {' | '.join(cells)} |", flush=True)
    return 0


def _medians(matrices: np.ndarray, rows: int, rounds: int) -> list[float]:
    random = np.random.default_rng(rows)
    x = random.standard_normal((rows, matrices.shape[1]), "float32")
    counts = np.bincount(random.integers(0, len(matrices), rows), minlength=len(matrices))
    ends = np.cumsum(counts).astype("int32")
    exact = np.concatenate(
        [
            part @ matrix
            for part, matrix in zip(np.split(x.astype("float64"), ends[:-1]), matrices, strict=True)
        ]
    )
    calls = [_ours(matrices, x, ends), _for_each(matrices, x, ends), _by_every(matrices, x, ends)]
    for name, call in zip(COLUMNS, calls, strict=True):
        held(name, call(), exact, _TOLERANCE)
    return medians_in_turns(calls, rounds)


def _ours(matrices: np.ndarray, x: np.ndarray, ends: np.ndarray) -> Call:
    shape = (len(x), matrices.shape[2])
    return call_of(ir.GroupedProduct(), shape, {"src": x, "ends": ends}, {"weights": matrices})


def _for_each(matrices: np.ndarray, x: np.ndarray, ends: np.ndarray) -> Call:
    result = np.empty((len(x), matrices.shape[2]), "float32")
    begins = [0, *ends[:-1].tolist()]
    parts = [
        (_product(matrix, x[begin:end]), x[begin:end], result[begin:end])
        for matrix, begin, end in zip(matrices, begins, ends.tolist(), strict=True)
        if end > begin
    ]

    def call() -> np.ndarray:
        for function, part, to in parts:
            function(part, to)
        return result

    return call


def _by_every(matrices: np.ndarray, x: np.ndarray, ends: np.ndarray) -> Call:
    """Sums and masks, which a graph has as well, are left out; of each product its group's rows are kept."""
    functions = [_product(matrix, x) for matrix in matrices]
    one, result = (np.empty((len(x), matrices.shape[2]), "float32") for _ in range(2))

    def call() -> np.ndarray:
        begin = 0
        for function, end in zip(functions, ends.tolist(), strict=True):
            function(x, one)
            result[begin:end] = one[begin:end]
            begin = end
        return result

    return call


def _product(matrix: np.ndarray, rows: np.ndarray) -> Callable[..., object]:
    return one_step(ir.MatMul(), (len(rows), matrix.shape[1]), {"src": rows}, {"weights": matrix})


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench experts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="8x1024x3584,64x1024x1024", help="groups x depth x columns")
    parser.add_argument("--rows", default="2,8,64,512", help="comma-separated (2,8,64,512)")
    parser.add_argument("--rounds", type=int, default=9, help="(9)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
