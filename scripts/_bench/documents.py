"""The command line of scripts/bench docs: makes the tables of docs/performance.md and its pages again.

Each section runs one of the scripts beside this one and replaces what stands in its page between two
marks, with the command, the date, the load and the commit. Each has a time limit; what fails or runs out of
time leaves its block as it was, and the status is 1.

    scripts/bench docs --realtime                       all sections
    scripts/bench docs --sections choices,roofline      some of them
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tvm_mxplan.testing.environment_info import environment

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs"


@dataclass(frozen=True)
class Section:
    """A benchmark by its name, its arguments, and the seconds after which it is given up."""

    benchmark: str
    arguments: str
    limit: float
    page: str
    """The file that its marks are in."""
    own_priority: bool = False
    """It asks itself for the real-time priority, with ``--realtime``."""

    def command(self, realtime: bool) -> list[str]:
        priority = ["chrt", "-f", "5"] if realtime and not self.own_priority else []
        own = ["--realtime"] if realtime and self.own_priority else []
        return [*priority, "scripts/bench", self.benchmark, *self.arguments.split(), *own]


SECTIONS = {
    "models": Section(
        "models", "--batch 1,8 --threads 1,2 --rounds 5 --starts 1", 4500, "performance.md", True
    ),
    "accuracy": Section("accuracy", "", 900, "performance.md"),
    "choices": Section("choices", "--batch 1,8 --rounds 7", 1800, "figures/choices.md"),
    "convolutions": Section("convolutions", "", 600, "figures/choices.md"),
    "layouts": Section("layouts", "--batch 1,8 --rounds 5", 1800, "figures/choices.md"),
    "costs": Section("costs", "--batch 1,8", 900, "figures/choices.md"),
    "roofline": Section("roofline", "--batch 1,8", 600, "figures/bounds.md"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Replace the blocks asked for; returns the exit status."""
    options = _parse(arguments)
    status = 0
    for name in options.sections.split(","):
        section = SECTIONS[name]
        block = run(section, options.realtime, options.limit or section.limit)
        if block is None:
            print(f"bench docs: {name} failed and stays as it was", file=sys.stderr)
            status = 1
        else:
            page = options.folder / section.page
            page.write_text(replaced(page.read_text(), name, block))
    return status


def run(section: Section, realtime: bool, limit: float) -> str | None:
    """The block that a section's script makes, or None where it fails."""
    command = section.command(realtime)
    print(f"bench docs: {' '.join(command)}", file=sys.stderr, flush=True)
    record = environment(ROOT)
    variables = {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))), **os.environ}
    with subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except BaseException as error:  # it and what it started
            os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return None
    if process.returncode:
        return None
    taken = "; ".join(f"{key}: {record[key]}" for key in ("date", "load average", "commit"))
    return f"    {' '.join(command)}\n\n{taken}\n\n{body(output)}"


def body(output: str) -> str:
    """A script's output without its title; sections go one level down."""
    lines = [line for line in output.splitlines() if not line.startswith("# ")]
    return re.sub(r"^## ", "### ", "\n".join(lines), flags=re.MULTILINE).strip()


def replaced(document: str, name: str, block: str) -> str:
    """``document`` with ``block`` between the marks of ``name``; ValueError where they are missing."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, found, rest = document.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the document has no marks {begin.strip()} and {end}")
    return f"{before}{begin}\n{block}\n\n{end}{after}"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench docs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sections", default=",".join(SECTIONS), help=f"of {', '.join(SECTIONS)} (all)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the pages with the marks are")
    parser.add_argument("--realtime", action="store_true", help="real-time priority")
    parser.add_argument("--limit", type=float, help="seconds for each section, in place of its own limit")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.sections.split(",") if name not in SECTIONS]:
        parser.error(f"{unknown[0]!r} is not one of {', '.join(SECTIONS)}")
    return options
