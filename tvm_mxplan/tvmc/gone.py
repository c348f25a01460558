"""Verbs of TVM's command line that this one lacks: recognised, and answered in one line."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import UnsupportedError

_ANSWERS = {
    "micro": "micro: microTVM is gone from TVM; there is nothing to use instead",
}


def add_parser(verbs: Any) -> None:
    for name, answer in _ANSWERS.items():
        # No character begins a flag, so that whatever follows the verb is taken.
        parser = verbs.add_parser(name, prefix_chars="\0", add_help=False)
        parser.add_argument("rest", nargs="*")
        parser.set_defaults(verb=_answer, answer=answer)


def _answer(args: argparse.Namespace) -> str:
    raise UnsupportedError(args.answer)
