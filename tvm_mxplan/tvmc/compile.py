"""``tvmc compile``: a model file in, a library out."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError, UnsupportedError
from ..targets import DEFAULT
from .arguments import (
    Parser,
    add_explain,
    add_gone,
    add_model,
    add_options,
    add_tuning_records,
    add_verbosity,
    check_format,
    given_bounds,
    given_options,
    given_states,
)
from .output import results_stream

_LAYOUTS = {"NCHW": "plain", "NHWC": "channels_last", "NCHW16c": "blocked"}
_DUMPS = {"relax": ".relax.py", "program": ".program.txt", "report": ".report.json"}
_NO_MACHINERY = "Relax has one executor and one runtime; leave it out"
_GONE = {
    "--cross-compiler": "only this machine's CPU yet; name another linker in the environment variable CXX",
    "--cross-compiler-options": "only this machine's CPU yet; leave it out",
    "--pass-config": "passes are set by --opt NAME=VALUE; see tvm_mxplan.Options",
    "--disabled-pass": "TVM_MXPLAN_DISABLE=1 in the environment turns all passes of tvm_mxplan off",
    "--opt-level": "there are no levels; leave it out",
    "-O": "there are no levels; leave it out",
    "--dump-offloads": "use --dump-code report, or --report",
    "--desired-layout-ops": "layouts are chosen for whole regions; use --desired-layout alone",
    "--mixed-precision": "use --precision bf16",
    "--target-llvm-mcpu": "write it into the target: --target 'dnnl, llvm -mcpu=NAME'",
    "--target-llvm-mattr": "write it into the target: --target 'dnnl, llvm -mattr=+NAME,-NAME'",
    "--executor": _NO_MACHINERY,
    "--runtime": _NO_MACHINERY,
    "--module-name": "the library's function is main; leave it out",
}


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "compile", help="compile a model", description="Compile a model into a library."
    )
    parser.set_defaults(verb=compile_model)
    add_model(parser)
    parser.add_argument(
        "--target",
        default=DEFAULT,
        help="libraries and TVM's target by preference, as 'dnnl, llvm -mcpu=x86-64-v3' (%(default)s)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("module.so"), help="the library to write (%(default)s)"
    )
    parser.add_argument(
        "-f", "--output-format", choices=("so", "tar", "mlf"), default="so", help="only so today"
    )
    add_tuning_records(parser, "plan by what tvmc tune measured; short for --opt tuning_records=FILE")
    parser.add_argument(
        "--layouts",
        metavar="POLICY",
        help="cost, any, channels_last, blocked, plain or naive: short for --opt layouts=POLICY",
    )
    parser.add_argument("--desired-layout", choices=_LAYOUTS, help="the same under the names TVM had")
    parser.add_argument(
        "--precision",
        help="model, f32, bf16, f16 or auto, what is computed in: short for --opt precision=PRECISION",
    )
    parser.add_argument(
        "--device-properties",
        type=Path,
        metavar="FILE",
        help="of the GPU to compile for, as tvmc device-properties wrote them",
    )
    add_options(parser)
    parser.add_argument(
        "--dump-code",
        type=_dumps,
        default=(),
        metavar="KINDS",
        help=f"write {', '.join(_DUMPS)} (separated by commas) beside the output",
    )
    parser.add_argument(
        "--dump-memory",
        type=Path,
        metavar="PLAN.svg",
        help="write the memory plan as a picture, and as PLAN.csv for other planners",
    )
    parser.add_argument(
        "--dump-after",
        metavar="PHASES",
        help="print what phases of the pipeline hand on (names separated by commas, or all): short for "
        "--opt dump_after=PHASES",
    )
    parser.add_argument("--report", action="store_true", help="print what runs where, and why")
    add_explain(parser)
    add_verbosity(parser)
    add_gone(parser, _GONE)


def compile_model(args: argparse.Namespace) -> str:
    """Compile and write; the text says what came of it."""
    options = _options(args)
    check_format(args.FILE, args.model_format)
    if args.output_format != "so" or args.output.suffix == ".tar":
        kind = args.output.suffix[1:] if args.output_format == "so" else args.output_format
        raise UnsupportedError(
            f"{args.output}: libraries are written as .so only, not as {kind}; name one .so"
        )
    from ..execution import machine

    machine.check_compiler()
    import tvm

    import tvm_mxplan

    from ..export.files import check_destination
    from ..report.inspection import RelaxDump

    check_destination(args.output, ".so")
    if args.dump_memory:
        check_destination(args.dump_memory, ".svg")
    dump = RelaxDump()
    with (
        _shown_phases(options) as shown,
        tvm.transform.PassContext(instruments=[dump] if "relax" in args.dump_code else []),
    ):
        ex = tvm_mxplan.compile(
            args.FILE,
            args.target,
            shapes=args.input_shapes,
            bounds=given_bounds(args),
            states=given_states(args),
            capacity=args.capacity,
            params=args.params,
            options={**options, **shown},
        )
    if args.dump_memory:
        _write_memory(args.dump_memory, ex)
    ex.export(args.output)
    _write_dumps(args, ex, dump.text)
    told = [str(ex.report)] if args.report else []
    if args.explain is not None:
        told.append(ex.report.explain(args.explain))
    if told:
        return "\n\n".join(told)
    share = f"{100 * ex.report.offloaded:.1f} % of the multiply-adds in {len(ex.report.regions)} region(s)"
    return f"{args.output}: {share if ex.report.regions else 'nothing offloaded'}"


def _options(args: argparse.Namespace) -> dict[str, Any]:
    options = given_options(args)
    if args.device_properties is not None:
        options["device_properties"] = args.device_properties
    for value in (args.layouts, _LAYOUTS.get(args.desired_layout)):
        if value and options.setdefault("layouts", value) != value:
            raise InvalidInputError(f"layouts are given as {options['layouts']} and as {value}; choose one")
    if args.precision and options.setdefault("precision", args.precision) != args.precision:
        raise InvalidInputError(
            f"precision is given as {options['precision']} and as {args.precision}; choose one"
        )
    if args.dump_after is not None:
        options["dump_after"] = args.dump_after
    return options


@contextmanager
def _shown_phases(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Writes the phases' results to standard output in the end, also where a later phase fails.

    Gives the options that this takes beside ``options``.
    """
    if not options.get("dump_after") or options.get("dump_folder") is not None:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="mxplan-") as folder:
        try:
            yield {"dump_folder": folder}
        finally:
            with results_stream() as stream:
                for path in sorted(Path(folder).iterdir(), key=lambda path: path.stat().st_mtime_ns):
                    stream.write(path.read_text())


def _write_dumps(args: argparse.Namespace, ex: Any, relax: str) -> None:
    from ..export.files import whole_file
    from ..report.inspection import region_programs

    for kind in args.dump_code:
        if kind == "relax":
            text = relax
        elif kind == "program":
            text = region_programs(ex.module)
        else:
            text = json.dumps(ex.report.to_json(), indent=1)
        with whole_file(args.output.with_name(args.output.name + _DUMPS[kind])) as partial:
            partial.write_text(text + "\n")


def _write_memory(path: Path, ex: Any) -> None:
    """A picture with a panel for each arena; the first one's plan as .csv, those of others numbered."""
    from ..core.allocation import write_csv
    from ..core.allocation.flatten import flatten
    from ..export.files import whole_file
    from ..report.arena import planned_arena
    from ..report.function_arena import function_arena
    from ..report.inspection import decoded_programs
    from ..report.memory_picture import Panel, memory_picture

    regions = {region.name for region in ex.report.regions}
    held = {memory.region for memory in ex.report.memory if memory.stands_in}
    programs = [program for program in decoded_programs(ex.module) if program.name not in held]
    arenas = [arena for program in programs if (arena := planned_arena(program))]
    arenas += [function_arena(memory) for memory in ex.report.memory if memory.region not in regions]
    if not arenas:
        raise UnsupportedError(
            f"{path}: no plan to draw; only regions of libraries in fixed shapes are planned here"
        )
    with whole_file(path) as partial:
        panels = [Panel(a.name, a.problem, a.plan, a.kinds, a.names) for a in arenas]
        partial.write_text(memory_picture(panels))
    for number, arena in enumerate(arenas):
        name = f"{path.stem}.csv" if number == 0 else f"{path.stem}-{number}.csv"
        with whole_file(path.with_name(name)) as partial:
            write_csv(partial, *flatten(arena.problem, arena.plan))


def _dumps(text: str) -> tuple[str, ...]:
    kinds = tuple(kind.strip() for kind in text.split(","))
    for kind in kinds:
        if kind not in _DUMPS:
            raise argparse.ArgumentTypeError(f"no code {kind!r} to dump; choose from {', '.join(_DUMPS)}")
    return kinds
