"""Changed files of Relay: they are read, or refused by an error of ours in one line."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from relay_models import bert, relay_of
from relay_parameters import parameter_bytes
from relay_printer import as_json, as_text

from tvm_mxplan.errors import InvalidInputError, UnsupportedError
from tvm_mxplan.frontend.relax.tvm_tensors import read_parameters
from tvm_mxplan.frontend.relay import json_program, parser
from tvm_mxplan.frontend.relay.importer import import_program

ROUNDS = 120
PROGRAM = relay_of(bert(tokens=3, width=6, heads=2, layers=1))
CONSTANTS = relay_of(bert(tokens=3, width=6, heads=2, layers=1), constants=True)
_WORDS = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    "=",
    "%0",
    "%x",
    "0",
    "-1",
    "1e9f",
    '"',
    "/*",
    "meta[a][0]",
    "let ",
]


def changed(data: bytes, choose: random.Random) -> bytes:
    """A few bytes flipped, words put in, parts left out, doubled or moved."""
    for _ in range(choose.randint(1, 3)):
        at, length = choose.randrange(len(data)), choose.randint(1, 12)
        part = data[at : at + length]
        kind = choose.randrange(6)
        if kind == 0:
            data = data[:at] + bytes([choose.randrange(256)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + choose.choice(_WORDS).encode() + data[at:]
        elif kind == 2:
            data = data[:at] + data[at + length :]
        elif kind == 3:
            data = data[:at] + part + data[at:]
        elif kind == 4:
            to = choose.randrange(len(data))
            data = data[:to] + part + data[to:]
        else:
            data = data[: max(1, at)] if choose.random() < 0.2 else data.replace(part[:2], part[-2:], 1)
    return data


def read_text(data: bytes, path: Path) -> None:
    import_program(*parser.parse(data.decode("utf-8", "replace"), str(path)), {})


def read_json(data: bytes, path: Path) -> None:
    import_program(*json_program.read(data.decode("utf-8", "replace"), str(path)), {})


def read_params(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    read_parameters(path)


@pytest.mark.parametrize(
    "form, data, read",
    [
        ("text", as_text(PROGRAM.params, PROGRAM.result).encode(), read_text),
        ("metadata", as_text(CONSTANTS.params, CONSTANTS.result).encode(), read_text),
        ("json", as_json(PROGRAM.params, PROGRAM.result).encode(), read_json),
        ("params", parameter_bytes({name: w[:2] for name, w in PROGRAM.weights.items()}), read_params),
    ],
)
def test_changed_files(tmp_path: Path, form: str, data: bytes, read: Callable[[bytes, Path], None]) -> None:
    choose, refused = random.Random(f"relay {form}"), 0
    path = tmp_path / "changed"
    read(data, path)
    for _ in range(ROUNDS):
        try:
            read(changed(data, choose), path)
        except (InvalidInputError, UnsupportedError) as error:
            refused += 1
            assert str(error).startswith(str(path)) and "\n" not in str(error), str(error)
            assert len(str(error)) < 1000
            assert "has no attribute" not in str(error) and "is not defined)" not in str(error)
    assert refused > ROUNDS / 4


def test_a_file_of_nothing(tmp_path: Path) -> None:
    for count in (0, 1, 7, 16, 24):
        with pytest.raises(InvalidInputError, match="save it again"):
            read_params(np.arange(count, dtype=np.uint8).tobytes(), tmp_path / "p.params")
