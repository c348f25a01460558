"""``tvmc show``: what a compiled model takes and gives, and what runs where."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .arguments import Parser, add_explain, add_verbosity


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "show",
        help="show what is in a compiled model",
        description="Show what a compiled model takes and gives, and what runs where.",
    )
    parser.set_defaults(verb=show)
    parser.add_argument("FILE", type=Path, help="the library that tvmc compile wrote")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="signature and report as JSON")
    form.add_argument("--program", action="store_true", help="the programs of its regions")
    add_explain(form)
    add_verbosity(parser)


def show(args: argparse.Namespace) -> str:
    """Signature and report as text."""
    from ..execution.executable import load
    from ..report.inspection import region_programs

    ex = load(args.FILE)
    if args.json:
        return json.dumps({"signature": ex.signature.to_json(), "report": ex.report.to_json()}, indent=1)
    if args.program:
        return region_programs(ex.module) or "no regions"
    if args.explain is not None:
        return ex.report.explain(args.explain)
    lines = [f"input  {port}" for port in ex.signature.inputs]
    lines += [f"output {port}" for port in ex.signature.outputs]
    if not ex.signature.outputs:
        return "\n".join([*lines, "written by TVM alone: it carries no types and no report"])
    return "\n".join([*lines, "", str(ex.report)])
