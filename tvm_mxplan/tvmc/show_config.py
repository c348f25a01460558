"""``tvmc show-config``: versions, the machine's instruction sets, environment variables."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .arguments import Parser, add_verbosity


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "show-config",
        help="show versions and settings",
        description="Show versions, the machine's instruction sets, and environment variables.",
    )
    parser.set_defaults(verb=show_config)
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_verbosity(parser)


def show_config(args: argparse.Namespace) -> str:
    """The configuration by section."""
    from ..configuration import configuration

    facts = configuration()
    if args.json:
        return json.dumps(facts, indent=1)
    width = max(len(name) for section in facts.values() for name in section)
    lines = []
    for title, section in facts.items():
        lines += [f"{title}:", *(f"  {name:{width}}  {value}" for name, value in section.items())]
    return "\n".join(lines)
