"""``tvmc cache``: what compilations with ``--opt cache=on_compile`` have kept on disk."""

from __future__ import annotations

import argparse
from typing import Any

from .arguments import Parser, add_verbosity, byte_count


def add_parser(verbs: Any) -> None:
    parser: Parser = verbs.add_parser(
        "cache",
        help="look at or clear the cache of compilations",
        description="The compilations kept on disk: in TVM_MXPLAN_CACHE_DIR, else in the user's cache home.",
    )
    add_verbosity(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _action(actions, "list", _list, "the files, the most recently used first")
    show = _action(actions, "show", _show, "what a file holds, and what it was made for")
    show.add_argument("FILE", help="a file's name, the beginning of one, or a path")
    verify = _action(actions, "verify", _verify, "check every byte; exit code 1 if a file is damaged")
    verify.add_argument("FILE", nargs="*", help="names or paths; by default all files")
    prune = _action(actions, "prune", _prune, "remove the least recently used files")
    prune.add_argument(
        "--max-bytes",
        type=byte_count,
        metavar="N",
        help="what may stay, as 500M or 2G; by default TVM_MXPLAN_CACHE_BYTES",
    )
    _action(actions, "clear", _clear, "remove all files")


def _action(actions: Any, name: str, function: Any, help: str) -> Parser:
    parser: Parser = actions.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
    parser.set_defaults(verb=function)
    add_verbosity(parser)
    return parser


def _list(_args: argparse.Namespace) -> str:
    from ..cache import maintenance

    return maintenance.listing()


def _show(args: argparse.Namespace) -> str:
    from ..cache import maintenance

    return maintenance.description(maintenance.path_of(args.FILE))


def _verify(args: argparse.Namespace) -> str:
    from ..cache import maintenance

    return maintenance.verified([maintenance.path_of(name) for name in args.FILE])


def _prune(args: argparse.Namespace) -> str:
    from ..cache import maintenance

    return maintenance.pruned(args.max_bytes)


def _clear(_args: argparse.Namespace) -> str:
    from ..cache import maintenance

    return maintenance.pruned(0)
