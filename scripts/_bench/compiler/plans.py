"""The command line of scripts/compare_plans: whether a change of the compiler changed any plan.

    scripts/compare_plans write before.json           plans of the whole zoo, nothing is built or run
    scripts/compare_plans compare before.json after.json

Written for each network and batch: the report without its seconds (steps, implementations, layouts,
reorders, arenas with all offsets, dispatch with its reasons), bytes and digest of each region's program, and
a digest of the lowered functions.  ``compare`` prints each difference with the path to it; its status is 1
if there is any.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare; returns the exit status."""
    options = _parse(arguments)
    if options.verb == "compare":
        before, after = (json.loads(path.read_text()) for path in (options.before, options.after))
        found = list(differences(before, after))
        for line in found[:_SHOWN]:
            print(line)
        more = f", the first {_SHOWN} of them above" if len(found) > _SHOWN else ""
        print(f"{len(before)} and {len(after)} plans, {len(found)} differences{more}")
        return 1 if found else 0
    plans = {}
    for name, batch in itertools.product(options.models.split(","), options.batch.split(",")):
        print(f"compare_plans: {name} batch {batch}", file=sys.stderr, flush=True)
        plans[f"{name} batch {batch}"] = plan_of(name, int(batch), options.machine, options.target)
    options.file.write_text(json.dumps(plans, indent=1, sort_keys=True) + "\n")
    return 0


def plan_of(name: str, batch: int, machine: str = "default", libraries: str = DEFAULT) -> dict[str, Any]:
    """Returns the pipeline's decisions for a network of the zoo, as plain data.

    Parameters
    ----------
    machine : as the option of that name.
    libraries : by preference, as in a target.
    """
    target, recorder = tvm.target.Target("llvm"), Recorder()
    parsed = TargetText.of(libraries).parsed()
    planners = [registry.planner(one) for one in parsed.libraries]
    given = Given(recorder, order=parsed.order)
    mod = import_model(zoo.load(name, batch), None, name)
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
                    region: {"bytes": len(program), "digest": hashlib.sha256(program).hexdigest()}
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
    write.add_argument("--models", default=MODELS, help="comma-separated names from the zoo (all)")
    write.add_argument("--batch", default="1", help="batches (1)")
    write.add_argument(
        "--machine",
        default="default",
        help="default, measured, or a file of rates: plans go by them (default)",
    )
    write.add_argument("--target", default=DEFAULT, help="libraries by preference (%(default)s)")
    compare = verbs.add_parser("compare", help="compare two files")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
