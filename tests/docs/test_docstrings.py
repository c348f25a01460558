"""Docstrings open with a name for the thing that they describe, not with What, Which, Why, Who or Where."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("byoc", "passes", "tvm_mxplan", "scripts", "tests")
OPENING = re.compile(r"\s*(What|Which|Why|Who|Whose|Where)\b")


def documented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines and texts of all strings that stand alone: docstrings, and those behind constants and fields."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str(text))):
                yield node.lineno, text


def test_docstrings_open_with_the_thing() -> None:
    example = ast.parse('def f():\n    "What f gives."\nX = 1\n"""Where x is."""\nWhatever = "What"\n')
    assert {line for line, text in documented(example) if OPENING.match(text)} == {2, 4}
    found, count = [], 0
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.py")):
            for line, text in documented(ast.parse(path.read_text())):
                count += 1
                if OPENING.match(text):
                    found.append(f"{path.relative_to(ROOT)}:{line}: {text.strip().splitlines()[0]}")
    assert count > 3000, "the docstrings are found"
    assert not found
