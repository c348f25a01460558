"""The shared parts of verbs: a parser that answers in one line, types of values, flags that TVM once had."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..frontend.stated_inputs import CAPACITY

_T = TypeVar("_T")

if TYPE_CHECKING:
    from ..remote.address import Remote

_READ = ("onnx", "relax", "relay")
_FORMATS = (*_READ, "keras", "paddle", "pb", "pytorch", "tflite")
_UNITS = {"K": 10, "M": 20, "G": 30}
_EXPLAIN = "--explain"
_OPERATOR = re.compile(r"[A-Za-z]\w*_\d+")
_BOUND = re.compile(r"(?P<name>[^\s=:]+)=(?P<low>\d+):(?P<high>\d+)")
_SHAPE = re.compile(r"[\s,;]*(?P<name>[^\s\[\]]+?)\s*:\s*\[(?P<dims>[^\[\]]*)\]")


class Parser(argparse.ArgumentParser):
    """Flags are written out, and a wrong one costs one line and exit code 2."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As ever; what follows --explain is its own only if it is an operator's name, not a file's."""
        args = list(sys.argv[1:] if args is None else args)
        for at, word in enumerate(args):
            if word == _EXPLAIN and not _OPERATOR.fullmatch("".join(args[at + 1 : at + 2])):
                args[at] = f"{_EXPLAIN}="
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        line = " ".join(message.split())
        print(f"{self.prog}: error: {line}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    """-v and -q, before the verb as well as behind it."""
    group = parser.add_mutually_exclusive_group()
    flags = {
        "-v": ("--verbose", "tracebacks, and all that TVM prints"),
        "-q": ("--quiet", "print nothing but errors"),
    }
    for short, (long, told) in flags.items():
        group.add_argument(short, long, help=told, action="store_true", default=argparse.SUPPRESS)


def add_explain(parser: argparse._ActionsContainer) -> None:
    """``--explain`` for all operators, ``--explain conv2d_3`` for one; None where it is not given."""
    parser.add_argument(
        _EXPLAIN,
        nargs="?",
        const="",
        metavar="OPERATOR",
        help="print for each operator, or the named one, its candidates, costs, and why they are out; "
        f"{_EXPLAIN}=NODE for those that come from an ONNX node",
    )


def add_input_shapes(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument(
        "--input-shapes",
        type=input_shapes,
        metavar="SHAPES",
        help=f'{help}, as "data:[1,3,224,224] mask:[1]"',
    )


def add_open_shapes(parser: argparse.ArgumentParser) -> None:
    """``--input-shapes`` with names for dimensions that stay open, and ``--bounds`` of these."""
    parser.add_argument(
        "--input-shapes",
        type=open_shapes,
        metavar="SHAPES",
        help='shapes in place of the model\'s, as "data:[1,3,224,224] ids:[batch,128]"; names stay open',
    )
    parser.add_argument(
        "--bounds",
        type=bounds,
        action="extend",
        default=[],
        metavar="BOUNDS",
        help='least and largest numbers of open dimensions, as "batch=1:32 seq=1:512"; calls with others are '
        "refused",
    )


def add_states(parser: argparse.ArgumentParser) -> None:
    """``--states`` and ``--capacity``: what a library keeps from call to call."""
    parser.add_argument(
        "--states",
        type=states,
        action="extend",
        default=[],
        metavar="STATES",
        help='inputs and the results that they are in the next call, as "past_key=present_key"; calls of the '
        "library go through ex.session()",
    )
    parser.add_argument(
        "--capacity",
        type=positive,
        default=CAPACITY,
        help="rows that there is room for in states that grow (%(default)s)",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model's file, what it holds, its parameters and its shapes; see :func:`check_format`."""
    parser.add_argument("FILE", type=Path, help="the model")
    parser.add_argument(
        "--model-format", choices=_FORMATS, help=f"{', '.join(_READ)}; by default by what is in FILE"
    )
    parser.add_argument(
        "--params", type=Path, metavar="FILE", help="parameters of a Relax or Relay model, as .npz or .params"
    )
    add_open_shapes(parser)
    add_states(parser)


def check_format(path: Path, stated: str | None) -> None:
    """Whether it is a format that can be read; what is in the file is left to its reader."""
    from ..errors import InvalidInputError, UnsupportedError
    from ..frontend.formats import format_of

    if stated not in (None, *_READ):
        raise UnsupportedError(f"{path}: {stated} models are not read by this build; convert it to ONNX")
    found = format_of(path)
    if found is None and stated is None and path.is_file():
        raise InvalidInputError(f"{path}: no known suffix; expected .onnx, or give --model-format onnx")
    kind = None if found is None else found.value.removesuffix("-json")
    if stated is not None and kind not in (None, stated):
        raise InvalidInputError(f"{path}: holds {kind}, not {stated}; leave --model-format out")
    if stated not in (None, "onnx") and found is None and path.is_file():
        raise InvalidInputError(f"{path}: holds no {stated} module as text or JSON; save the module again")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--opt",
        action="append",
        type=_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="a field of tvm_mxplan.Options; may be given several times",
    )


def add_tuning_records(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--tuning-records", type=Path, metavar="FILE", help=help)


def add_remote(parser: argparse.ArgumentParser, what: str) -> None:
    """Flags for another machine, as TVM's command line had them; see :func:`given_remote`."""
    group = parser.add_argument_group(f"to {what} on another machine, whose TVM has tvm_mxplan too")
    group.add_argument(
        "--rpc-tracker", metavar="HOST:PORT", help="a tracker that lends servers (port 9190 if left out)"
    )
    group.add_argument("--rpc-key", metavar="KEY", help="what the servers are called")
    group.add_argument("--hostname", metavar="HOST", help="a server, in place of a tracker")
    group.add_argument("--port", type=positive, help="the server's port, 9090 if left out")


def given_remote(args: argparse.Namespace) -> Remote | None:
    """The machine that the flags name; None where they name none."""
    from ..errors import InvalidInputError
    from ..remote.address import SERVER_PORT, Remote

    server, key = args.hostname or "", args.rpc_key or ""
    if args.port is not None and not server:
        raise InvalidInputError("--port is that of a server; give its --hostname too")
    if key and not server and not args.rpc_tracker:
        raise InvalidInputError(f"--rpc-key {key}: whose? Give --rpc-tracker, or the --hostname of a server")
    if server:
        named = f"[{server}]" if ":" in server else server
        server = f"{named}:{args.port or SERVER_PORT}"
    return Remote(args.rpc_tracker or "", server, key) if server or args.rpc_tracker else None


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options in ``--opt`` and ``--tuning-records``."""
    options = dict(args.opt)
    if args.tuning_records is not None:
        options["tuning_records"] = args.tuning_records
    return options


def input_shapes(text: str) -> dict[str, tuple[int, ...]]:
    """``"data:[1,3,224,224] mask:[1,8]"`` as a dict; a name may hold colons."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, dims in _shapes(text):
        if not all(map(_is_extent, dims)):
            raise argparse.ArgumentTypeError(
                f"input {name!r}: expected positive numbers as shape, got [{','.join(dims)}]"
            )
        shapes[name] = tuple(int(dim) for dim in dims)
    return shapes


def open_shapes(text: str) -> dict[str, tuple[int | str, ...]]:
    """``"data:[1,3,224,224] ids:[batch,128]"`` as a dict; a name stands for a dimension that stays open."""
    shapes: dict[str, tuple[int | str, ...]] = {}
    for name, dims in _shapes(text):
        if not all(_is_extent(dim) or re.match(r"[^\W\d]", dim) for dim in dims):
            raise argparse.ArgumentTypeError(
                f"input {name!r}: expected positive numbers and names as shape, got [{','.join(dims)}]"
            )
        shapes[name] = tuple(int(dim) if dim.isdecimal() else dim for dim in dims)
    return shapes


def _is_extent(text: str) -> bool:
    return text.isdecimal() and int(text) > 0


def _shapes(text: str) -> list[tuple[str, list[str]]]:
    """Names of inputs, each once, and the dimensions behind them."""
    found: dict[str, list[str]] = {}
    position = 0
    while text[position:].strip(" ,;"):
        match = _SHAPE.match(text, position)
        if match is None:
            rest = text[position:].strip()
            raise argparse.ArgumentTypeError(f'expected shapes as "name:[1,3,224,224]", got {rest!r}')
        if match["name"] in found:
            raise argparse.ArgumentTypeError(f"input {match['name']!r} is given two shapes")
        found[match["name"]] = [dim.strip() for dim in match["dims"].split(",")]
        position = match.end()
    if not found:
        raise argparse.ArgumentTypeError('expected shapes as "name:[1,3,224,224]", got nothing')
    return list(found.items())


def bounds(text: str) -> list[tuple[str, tuple[int, int]]]:
    """``"batch=1:32 seq=1:512"`` as pairs of a name and its bounds."""
    found = []
    for word in text.replace(",", " ").split():
        match = _BOUND.fullmatch(word)
        if match is None or int(match["low"]) > int(match["high"]):
            raise argparse.ArgumentTypeError(
                f'expected bounds as "batch=1:32", the smaller number first, got {word!r}'
            )
        found.append((match["name"], (int(match["low"]), int(match["high"]))))
    if not found:
        raise argparse.ArgumentTypeError('expected bounds as "batch=1:32", got nothing')
    return found


def states(text: str) -> list[tuple[str, str]]:
    """``"past=present"`` as pairs of an input and a result."""
    pairs = [word.partition("=") for word in text.replace(",", " ").split()]
    for name, equals, result in pairs:
        if not (name and equals and result):
            raise argparse.ArgumentTypeError(
                f'expected states as "past=present", got {name + equals + result!r}'
            )
    if not pairs:
        raise argparse.ArgumentTypeError('expected states as "past=present", got nothing')
    return [(name, result) for name, _, result in pairs]


def given_bounds(args: argparse.Namespace) -> dict[str, tuple[int, int]]:
    """Returns the bounds in ``--bounds``, which may be given several times."""
    return _each_once(args.bounds, "--bounds: dimension {!r} is given two bounds; choose one")


def given_states(args: argparse.Namespace) -> dict[str, str]:
    """Returns the states in ``--states``, which may be given several times."""
    return _each_once(args.states, "--states: input {!r} is given two results; choose one")


def _each_once(pairs: Iterable[tuple[str, _T]], twice: str) -> dict[str, _T]:
    from ..errors import InvalidInputError

    found: dict[str, _T] = {}
    for name, one in pairs:
        if found.setdefault(name, one) != one:
            raise InvalidInputError(twice.format(name))
    return found


def positive(text: str) -> int:
    """A number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """A number from 0 on, as numpy's generators begin with."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, got {text!r}")
    return int(text)


def byte_count(text: str) -> int:
    """A number of bytes; K, M and G behind it stand for 2**10, 2**20 and 2**30."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "")
    if not number.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of bytes, as 500M or 2G, got {text!r}")
    return int(number) << _UNITS.get(unit, 0)


def add_gone(parser: argparse.ArgumentParser, answers: Mapping[str, str]) -> None:
    """Flags of TVM's old command line that do nothing here, each with its answer; help leaves them out."""
    for flag, answer in answers.items():
        parser.add_argument(flag, action=_Gone, nargs="?", const=answer, help=argparse.SUPPRESS)


class _Gone(argparse.Action):
    """Answers instead of acting."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        raise argparse.ArgumentError(self, str(self.const))


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return name, words[value.lower()]
    for convert in (int, float):
        try:
            return name, convert(value)
        except ValueError:
            continue
    return name, value
