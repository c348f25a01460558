"""``tvmc replay``: the step in a file that opcheck wrote, run again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .arguments import Parser, add_verbosity


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "replay",
        help="run again a step that opcheck found to differ",
        description="Run again a step that opcheck found to differ, and compare.",
    )
    parser.set_defaults(verb=replay_step)
    parser.add_argument("FILE", type=Path, help="the .npz file that opcheck wrote")
    add_verbosity(parser)


def replay_step(args: argparse.Namespace) -> str:
    """Replays a recorded step and returns what was recorded, and whether it is still so."""
    from ..opcheck import replay

    return str(replay(args.FILE))
