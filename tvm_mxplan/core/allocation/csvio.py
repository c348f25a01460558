"""Problems and plans as CSV, in the columns of minimalloc: ``id,lower,upper,size[,offset]``.

``lower`` and ``upper`` are the half-open life, ``size`` is in bytes, ``offset`` is the answer.  One
line is one buffer, so only items of a single rectangle at relative offset 0 can be written.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from .plan import Plan
from .problem import INT64_MAX, Item, Problem, ProblemError, Rectangle

COLUMNS = ("id", "lower", "upper", "size")


def read_csv(path: str | Path, *, capacity: int | None = None, alignment: int = 1) -> Problem:
    """Read a problem; an ``offset`` column and any further ones are ignored.

    Parameters
    ----------
    path : str or Path
        The file.
    capacity, alignment : int, optional
        What the format has no column for.

    Raises
    ------
    ProblemError
        The message names the file, the line and what was expected.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ProblemError(f"{path}: cannot be read ({reason}), expected a CSV file") from error
    items: list[Item] = []
    places: list[int] = []
    rows = csv.reader(io.StringIO(text))
    try:
        for number, row in enumerate(rows):
            where = f"{path}:{rows.line_num}"
            if number == 0:
                places = _places(row, where)
            elif row:
                items.append(_item(row, places, where, alignment))
    except csv.Error as error:
        raise ProblemError(f"{path}:{rows.line_num}: {error}, expected CSV") from error
    if not places:
        raise ProblemError(f"{path}:1: the file is empty, expected the columns {','.join(COLUMNS)}")
    try:
        return Problem(tuple(items), capacity)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from error


def _places(header: Sequence[str], where: str) -> list[int]:
    names = [name.strip() for name in header]
    for column in COLUMNS:
        if names.count(column) != 1:
            found = "missing" if column not in names else "there twice"
            raise ProblemError(f"{where}: column {column!r} is {found}, expected {','.join(COLUMNS)}")
    return [names.index(column) for column in COLUMNS]


def _item(row: Sequence[str], places: Sequence[int], where: str, alignment: int) -> Item:
    if len(row) <= max(places):
        raise ProblemError(f"{where}: {len(row)} fields, expected {max(places) + 1} or more")
    numbers = []
    for column, place in zip(COLUMNS[1:], places[1:], strict=True):
        field = row[place].strip()
        # int() alone would also take "1_000" and digits of other scripts.
        if not (field.isascii() and field.isdigit()) or len(field) > 19 or int(field) > INT64_MAX:
            raise ProblemError(f"{where}: {column} is {field!r}, expected an integer from 0 to {INT64_MAX}")
        numbers.append(int(field))
    birth, death, nbytes = numbers
    if death <= birth:
        raise ProblemError(f"{where}: upper is {death}, expected more than lower, which is {birth}")
    return Item(row[places[0]].strip(), (Rectangle(birth, death, 0, nbytes),), alignment)


def write_csv(path: str | Path, problem: Problem, plan: Plan | None = None) -> None:
    """Write a problem, with the offsets of ``plan`` where there is one.

    Raises
    ------
    ProblemError
        If an item is more than one rectangle at relative offset 0, or there are several scopes.
    """
    if len(problem.scopes) > 1:
        raise ProblemError(f"{path}: the problem has scopes {problem.scopes}, expected one in CSV")
    table: list[Sequence[str | int]] = [COLUMNS if plan is None else (*COLUMNS, "offset")]
    for index, item in enumerate(problem.items):
        if len(item.rectangles) != 1 or item.rectangles[0].offset:
            raise ProblemError(f"{path}: item {item.name!r} is a group, expected one rectangle in CSV")
        only = item.rectangles[0]
        row = (item.name, only.birth, only.death, only.nbytes)
        table.append(row if plan is None else (*row, plan.offsets[index]))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    Path(path).write_bytes(text.getvalue().encode())
