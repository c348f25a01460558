"""The command line of scripts/bench lines: convolutions of each channel of lines by itself, in each layout.

    scripts/bench lines --lines 2x8192x15:4,1x512x1000:31

Lines are samples x channels x length, with the length of the filters behind a colon. In the plain layout
oneDNN has a product for each channel; with channels last, or in blocks, the runtime shows lines as images of
one row. Results are held against float64 first; times are microseconds by the clock, in turns, medians.
OMP_NUM_THREADS says how many threads. Where a layout has reference code alone there is no time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.core.layout.layout_arrays import pack, unpack
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.one_step import held, medians_in_turns

LINES = "2x8192x15:4,1x1536x64:4,1x1024x200:9,8x256x500:15,1x512x1000:31"
_MOST = 1e-6


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="bench lines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", default=LINES, help="samples x channels x length : filter's length")
    parser.add_argument("--rounds", type=int, default=9, help="(9)")
    options = parser.parse_args(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    block = 16 if "avx512" in library.isa() else 8
    layouts = ("abc", "acb", f"aBc{block}b")
    print(f"| lines | {' | '.join(layouts)} | {' | '.join(f'{one} / abc' for one in layouts[1:])} |")
    print(f"| --- | {' | '.join('---:' for _ in range(2 * len(layouts) - 1))} |")
    for text in options.lines.split(","):
        extents, _, taps = text.partition(":")
        samples, channels, length = (int(number) for number in extents.split("x"))
        calls = _calls((samples, channels, length), int(taps), layouts)
        times = dict(zip(calls, medians_in_turns(list(calls.values()), options.rounds), strict=True))
        cells = [f"{times[one]:.0f}" if one in times else "-" for one in layouts]
        cells += [f"{times[one] / times['abc']:.3f}" if one in times else "-" for one in layouts[1:]]
        print(f"| {text} | {' | '.join(cells)} |", flush=True)
    return 0


def _calls(shape: tuple[int, int, int], taps: int, layouts: Sequence[str]) -> dict[str, Callable[[], object]]:
    """The step in each layout that has a kernel for it."""
    random = np.random.default_rng(0)
    x = random.standard_normal(shape, "float32")
    filters = random.standard_normal((shape[1], 1, 1, taps), "float32")
    before, behind = taps // 2, (taps - 1) // 2
    padded = np.pad(x.astype("float64"), [(0, 0), (0, 0), (before, behind)])
    exact = sum(padded[:, :, at : at + shape[2]] * filters[:, 0, :, at] for at in range(taps))
    attrs = ir.Convolution((1,), (before, behind), (1,), shape[1])
    found: dict[str, Callable[[], object]] = {}
    for name in layouts:
        b = ProgramBuilder("lines")
        operands = [("src", b.port("input", "x", shape, "float32")), ("weights", b.constant(filters))]
        port = b.port("output", "y", shape, "float32")
        b.write_output(b.step("lines", attrs, shape, operands), port)
        plain = b.finish()
        values = tuple(v if v.kind == "constant" else replace(v, layout=name) for v in plain.values)
        program, layout = replace(plain, values=values), parse_layout(name)
        if library.describe(program).steps[0].is_reference:
            continue
        function, given = library.trial(program, b.constants), pack(x, layout)
        result = np.empty_like(given)
        function(given, result)
        held(name, unpack(result, layout, shape), np.asarray(exact), _MOST)
        found[name] = partial(function, given, result)
    return found


if __name__ == "__main__":
    sys.exit(main())
