"""``tvmc device-properties``: what plans for a GPU depend on, written where the GPU is."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .arguments import Parser, add_verbosity


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "device-properties",
        help="write the properties of this machine's GPU",
        description="Write the properties of this machine's GPU, so that any machine can compile for it.",
    )
    parser.set_defaults(verb=device_properties)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write")
    add_verbosity(parser)


def device_properties(args: argparse.Namespace) -> str:
    """Writes the properties and returns where they were written."""
    from ..byoc import registry
    from ..export.files import check_destination, whole_file
    from ..targets import GPU

    path = check_destination(args.output, args.output.suffix)
    (name,) = registry.names_beside(GPU)
    text = registry.engine(name).device_properties()
    with whole_file(path) as partial:
        partial.write_text(text + "\n")
    return f"{path}: written"
