"""The command line of scripts/bench models: whole networks, ours against other engines.

    scripts/bench models --models resnet50,mobilenet_v2 --batch 1,8 --threads 1,2 --json out.json
    scripts/bench models --zoo modern --batch 1 --threads 1 --processor --exporting-python other/bin/python

The second takes networks of timm and transformers (`_exports/modern.py`), exported once and kept in --folder.
Every engine's answer is checked before it is timed. The first of ``--engines`` is compared with the others.
Networks of your own are timed by scripts/bench onnx.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tvm_mxplan.testing import zoo

from ..harness.command import Case, add_options, complain, names_among, positive_numbers, run
from ..harness.files import Files, write_exported, write_model
from ..inputs import modern
from ..inputs.modern import NotExported

PROG = "bench models"
PUBLISHED = (*zoo.LIGHT, *zoo.BUILT)
_ZOOS = {"published": (zoo.names(), PUBLISHED)} | {
    name: (known, known) for name, known in modern.NAMES.items()
}
"""The names that there are, and those that run where none is given."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parsed(arguments)
    try:
        return run(PROG, options, _cases(options), zoo=options.zoo)
    except NotExported as error:
        return complain(PROG, str(error))


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    exports = modern.Exports(options.folder, options.exporting_python, options.exporter, options.zoo)
    exported = options.zoo in modern.ZOOS
    for name, batch in itertools.product(options.models, options.batch):
        yield Case(name, batch, partial(_write, exports if exported else None, name, batch))


def _write(exports: modern.Exports | None, name: str, batch: int, directory: Path) -> Files:
    if exports is not None:
        return write_exported(exports.model(name, batch), modern.inputs(name, batch, exports.zoo), directory)
    files = Files(directory)
    write_model(name, batch, files)
    return files


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, with the names of the zoo that is asked for."""
    parser = _parser()
    options = parser.parse_args(arguments)
    known, every = _ZOOS[options.zoo]
    try:
        options.models = list(every) if options.models is None else names_among(known)(options.models)
    except argparse.ArgumentTypeError as error:
        parser.error(f"argument --models: {error}")
    if options.zoo in modern.ZOOS and (missing := set(options.batch) - set(modern.BATCHES[options.zoo])):
        there = ", ".join(map(str, modern.BATCHES[options.zoo]))
        parser.error(f"argument --batch: the {options.zoo} zoo has {there}, not {min(missing)}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROG, description=__doc__.partition("\n")[0])
    parser.add_argument("--zoo", choices=list(_ZOOS), default="published", help="networks (published)")
    parser.add_argument(
        "--models",
        help=f"of {', '.join(zoo.names())} (all but tiny); "
        + "; ".join(f"{name}: of {', '.join(known)} (all)" for name, known in modern.NAMES.items()),
    )
    parser.add_argument(
        "--folder", type=Path, default=modern.default_folder(), help="of the modern zoo's exports"
    )
    parser.add_argument(
        "--exporting-python", default=sys.executable, help="a Python with torch, timm and transformers"
    )
    parser.add_argument("--exporter", choices=["new", "old"], default="new", help="of PyTorch's two (new)")
    parser.add_argument("--batch", type=positive_numbers, default=[1, 8], help="batches (1,8)")
    add_options(parser)
    return parser
