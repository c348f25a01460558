"""The command line of scripts/compare_plans: whether a change of the compiler changed any plan.

    scripts/compare_plans write before.json           plans of the whole zoo, nothing is built or run
    scripts/compare_plans write before.json --models resnet18,exports/vit.onnx --machine rates.json
    scripts/compare_plans compare before.json after.json
    scripts/compare_plans summary before.json after.json

Written for each network and batch: the report without its seconds (steps, implementations, layouts,
reorders, arenas with all offsets, dispatch with its reasons), bytes and digest of each region's program, and
a digest of the lowered functions.  Digests of programs leave out the version of their bytes.  ``compare``
prints each difference with the path to it; its status is 1 if there is any.  ``summary`` has a row for each
network whose decisions differ: steps, by what they run and in which layouts, that only one of the plans has,
and arenas; estimates alone are no difference there.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
import tvm

from tvm_mxplan.byoc import registry
from tvm_mxplan.core.program import codec
from tvm_mxplan.frontend.onnx import import_model
from tvm_mxplan.options import Options
from tvm_mxplan.pipeline import Given, build_pipeline
from tvm_mxplan.report.recorder import Recorder
from tvm_mxplan.targets import DEFAULT, TargetText
from tvm_mxplan.testing import zoo

MODELS = ",".join(zoo.names())
_OF_THE_MOMENT = ("seconds", "cache", "process_caches", "tuning")
_SHOWN = 40
_ABSENT = "absent"
_VERSION_BYTES = 4
"""Of a program's bytes, behind their first word."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare; returns the exit status."""
    options = _parse(arguments)
    if options.verb != "write":
        before, after = (json.loads(path.read_text()) for path in (options.before, options.after))
        if options.verb == "summary":
            print("\n".join(summary(before, after)))
            return 0
        found = list(differences(before, after))
        for line in found[:_SHOWN]:
            print(line)
        more = f", the first {_SHOWN} of them above" if len(found) > _SHOWN else ""
        print(f"{len(before)} and {len(after)} plans, {len(found)} differences{more}")
        return 1 if found else 0
    plans = {}
    for name, batch in itertools.product(options.models.split(","), options.batch.split(",")):
        print(f"compare_plans: {name} batch {batch}", file=sys.stderr, flush=True)
        plans[f"{Path(name).stem} batch {batch}"] = plan_of(name, int(batch), options.machine, options.target)
    options.file.write_text(json.dumps(plans, indent=1, sort_keys=True) + "\n")
    return 0


def plan_of(name: str, batch: int, machine: str = "default", libraries: str = DEFAULT) -> dict[str, Any]:
    """Returns the pipeline's decisions for a network of the zoo or in a file, as plain data.

    Parameters
    ----------
    name : in the zoo, or a path that ends in ``.onnx``; such a model has the batch that it has.
    machine : as the option of that name.
    libraries : by preference, as in a target.
    """
    target, recorder = tvm.target.Target("llvm"), Recorder()
    parsed = TargetText.of(libraries).parsed()
    planners = [registry.planner(one) for one in parsed.libraries]
    given = Given(recorder, order=parsed.order)
    model = onnx.load(name) if name.endswith(".onnx") else zoo.load(name, batch)
    mod = import_model(model, None, Path(name).stem)
    with target:
        lowered = build_pipeline(planners, Options(machine=machine), target, given)(mod)
    report = recorder.report.to_json()
    encoded = {program.name: codec.encode(program) for program in recorder.programs}
    # JSON and back: tuples become lists, as they are in a file.
    return json.loads(
        json.dumps(
            {
                "report": _lasting(report),
                "programs": {
                    region: {"bytes": len(program), "digest": _digest_of_program(program)}
                    for region, program in encoded.items()
                },
                "functions": {
                    gvar.name_hint: _digest(function)
                    for gvar, function in lowered.functions.items()
                    if isinstance(function, tvm.relax.Function)
                },
            }
        )
    )


def _lasting(data: Any) -> Any:
    """The report without what two compilations of one plan differ in."""
    if isinstance(data, dict):
        return {key: _lasting(value) for key, value in data.items() if key not in _OF_THE_MOMENT}
    return [_lasting(value) for value in data] if isinstance(data, list | tuple) else data


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """A line for each place where two plans differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from differences(before.get(key, _ABSENT), after.get(key, _ABSENT), f"{path}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, f"{path}/{at}")
    elif before != after:
        yield f"{path}: {_shortened(before)} -> {_shortened(after)}"


def summary(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A table in Markdown of the networks in both files."""
    both = [name for name in before if name in after]
    rows, same = [], 0
    for name in both:
        steps = [Counter(_steps(plans[name])) for plans in (before, after)]
        gone, new = steps[0] - steps[1], steps[1] - steps[0]
        arenas = [_arenas(plans[name]) for plans in (before, after)]
        if not gone and not new and arenas[0] == arenas[1]:
            same += 1
            continue
        cells = [
            ", ".join(f"{number} {step}" for step, number in some.items()) or "-" for some in (gone, new)
        ]
        rows.append(
            f"| {name} | {sum(steps[0].values())} | {cells[0]} | {cells[1]} | {arenas[0]} | {arenas[1]} |"
        )
    head = [
        "| network | steps | before alone | after alone | arena before | after |",
        "| --- | ---: | --- | --- | ---: | ---: |",
    ]
    return [*head, *rows, "", f"{same} of {len(both)} networks have the same steps and arenas."]


def _steps(plan: dict[str, Any]) -> Iterator[str]:
    """The kind, implementation and layouts of each step of a plan."""
    for region in plan["report"]["regions"]:
        for step in region["steps"]:
            yield f"{step['kind']} {step['implementation']} {'/'.join(step.get('layouts', []))}".strip()


def _arenas(plan: dict[str, Any]) -> int:
    """Bytes of the arenas of all regions."""
    return sum(region["arena_bytes"] for region in plan["report"]["regions"])


def _digest_of_program(program: bytes) -> str:
    """A digest of a program's bytes behind their version."""
    return hashlib.sha256(program[len(codec.MAGIC) + _VERSION_BYTES :]).hexdigest()


def _digest(function: tvm.relax.Function) -> str:
    """A digest of a function's text; its constants are left out."""
    return hashlib.sha256(function.script(show_meta=False).encode()).hexdigest()


def _shortened(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else f"{text[:120]} ..."


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="compare_plans", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write", help="plan networks and write what was decided")
    write.add_argument("file", type=Path, help="the JSON file to write")
    write.add_argument("--models", default=MODELS, help="comma-separated, of the zoo or .onnx (the zoo)")
    write.add_argument("--batch", default="1", help="batches (1)")
    write.add_argument(
        "--machine",
        default="default",
        help="default, measured, or a file of rates: plans go by them (default)",
    )
    write.add_argument("--target", default=DEFAULT, help="libraries by preference (%(default)s)")
    for verb, text in (("compare", "compare two files"), ("summary", "a table of what differs")):
        two = verbs.add_parser(verb, help=text)
        two.add_argument("before", type=Path)
        two.add_argument("after", type=Path)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
