"""The command line of scripts/sweep_kernels: every implementation of every kind of step, against float64.

Problems come from lists (scripts/_sweep/problems, grammar in scripts/_sweep/grammar.py), post-ops and
layouts are drawn at random, and every implementation that oneDNN offers for the step runs: its first choice,
and what it would take if that were refused, down to its reference code. Numbers are such that sums are exact:
results are compared bit for bit where nothing rounds. Each instruction set runs in a process of its own.
What surrounds a tensor and the padding of blocked layouts are watched. Errata
(byoc/runtime/onednn/primitives/errata.cc) do not count meanwhile.

The report counts cases (a problem with post-ops) and runs (of one implementation in one choice of layouts),
and names the smallest case of each group that is wrong. Exit status 1: something is wrong that no erratum
names.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path

from tvm_mxplan.core.processor import processor_fields

from .steps.element_types import FAMILIES
from .tally import Fault, Tally
from .worker import Work, repeat

# The values that ONEDNN_MAX_CPU_ISA takes, and the processor's flag for each.
ISAS = {
    "SSE41": "sse4_1",
    "AVX": "avx",
    "AVX2": "avx2",
    "AVX2_VNNI": "avx_vnni",
    "AVX512_CORE": "avx512dq",
    "AVX512_CORE_VNNI": "avx512_vnni",
    "AVX512_CORE_BF16": "avx512_bf16",
    "AVX512_CORE_FP16": "avx512_fp16",
    "AVX512_CORE_AMX": "amx_tile",
}
_STEPS_PAST_A_CRASH = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep and print a report; returns the exit status."""
    options = _parse(arguments)
    if options.case:
        outcomes = repeat(options.case)
        for outcome in outcomes:
            print(f"{outcome.wrong or 'right':6}  {','.join(outcome.layouts)}  {outcome.implementation}")
        return int(any(outcome.wrong for outcome in outcomes))
    isas = options.isa.split(",") if options.isa else present_isas()
    shard, shards = (int(number) for number in options.shard.split("/"))
    work = Work(
        "", options.seed, shard, shards, options.first, options.seconds / len(isas), options.cases,
        tuple(options.kinds.split(",")) if options.kinds else (), tuple(options.files), options.matching,
        not options.no_shrink, tuple(options.types.split(",")),
    )  # fmt: skip
    tally = Tally()
    for isa in isas:
        sweep(replace(work, isa=isa), tally, verbose=options.verbose)
    if options.implementations:
        print("\n".join(tally.by_implementation()) + "\n")
    print("\n".join(tally.lines()))
    unknown = [fault for fault in tally.faults.values() if not is_known(fault)]
    print(f"{len(unknown)} of {len(tally.faults)} groups are named by no erratum")
    return int(bool(unknown))


def present_isas() -> list[str]:
    """The instruction sets of this machine, widest last."""
    flags = processor_fields().get("flags", "").split()
    return [isa for isa, flag in ISAS.items() if flag in flags]


def is_known(fault: Fault) -> bool:
    """True if an erratum is about this implementation of this kind of step."""
    from tvm_mxplan.byoc.onednn import library

    of_bytes = re.search(r" dt=[us]8\b", fault.case) is not None
    return any(
        entry["condition"]["kind"] in ("", fault.kind)
        and entry["condition"]["byte_products"] in ("any", "some" if of_bytes else "none")
        and fnmatch(fault.implementation, entry["implementation"])
        for entry in library.errata()
    )


def sweep(work: Work, tally: Tally, *, verbose: bool = False) -> None:
    """Add what workers under one instruction set find to ``tally``; a case that kills one is a fault."""
    begun = time.monotonic()
    for _ in range(_STEPS_PAST_A_CRASH):
        left = work.seconds - (time.monotonic() - begun)
        if left <= 0:
            break
        status, last = _run(replace(work, seconds=left), tally, verbose)
        if status == 0:
            break
        if not last:
            raise RuntimeError(f"a worker for {work.isa} ends with status {status} before its first case")
        about = str(last["about"])
        kind, implementation = about.split()[0], about.split(" : ")[-1]
        tally.add_fault(Fault(kind, implementation, work.isa, f"ends with status {status}", about, "", 0))
        work = replace(work, first=int(last["number"]) + 1)
    tally.seconds += time.monotonic() - begun


def _run(work: Work, tally: Tally, verbose: bool) -> tuple[int, dict[str, object]]:
    """The exit status of a worker, and what it was about last."""
    command = [sys.executable, "-c", f"from _sweep import worker; worker.main({json.dumps(asdict(work))!r})"]
    scripts = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [scripts, os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": work.isa, "PYTHONPATH": path}
    about: dict[str, object] = {}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            message = json.loads(line)
            if "about" in message:
                about = message
                continue
            tally.add(message)
            if verbose:
                for fault in message["faults"]:
                    print(f"{fault['case']}\n    {fault['wrong']}", file=sys.stderr, flush=True)
    return process.returncode, about


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="sweep_kernels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("files", nargs="*", help="problem lists (the project's own)")
    add("--seconds", type=float, default=120.0, help="of all instruction sets together (120)")
    add("--cases", type=int, default=1 << 40, help="at most so many for each instruction set")
    add("--seed", type=int, default=0, help="of the sample (0)")
    add("--first", type=int, default=0, help="number of the first case of the sample (0)")
    add("--shard", default="0/1", metavar="I/N", help="every Nth case, from the Ith on")
    add("--kinds", default="", help="comma-separated kinds of steps (all)")
    add("--types", default="f32", help=f"comma-separated, of {', '.join(FAMILIES)} (f32)")
    add("--isa", default="", help=f"comma-separated, of {', '.join(ISAS)} (what the machine has)")
    add("--matching", default="", metavar="REGEX", help="judge only implementations with such names")
    add("--implementations", action="store_true", help="also count runs of each implementation")
    add("--no-shrink", action="store_true", help="report cases as they were drawn")
    add("--verbose", action="store_true", help="print faults as they are found")
    add("--case", default="", help="run one case again, as the report names it")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
