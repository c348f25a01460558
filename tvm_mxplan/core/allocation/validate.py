"""Checks a plan against its problem; shares no code with what made the plan.

Reads the rectangles as they were given, never the solver's normal form.  Every reason it returns
names the items and the numbers, so that a wrong plan can be understood from the report alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .plan import Plan, Status
from .problem import INT64_MAX, Item, Problem

Addresses = Sequence[Sequence[int]]


def validate(problem: Problem, plan: Plan, addresses: Addresses | None = None) -> list[str]:
    """Reasons why ``plan`` does not solve ``problem``.

    Parameters
    ----------
    problem : Problem
        What was asked.
    plan : Plan
        What was answered.
    addresses : sequence of sequence of int, optional
        First byte of each rectangle of each item as somebody laid them out from the plan; by default
        base offset plus relative offset.  Groups that came apart are reported.

    Returns
    -------
    list of str
        Empty if the plan is valid.
    """
    if len(plan.offsets) != len(problem.items):
        return [f"the plan has {len(plan.offsets)} offsets for {len(problem.items)} items"]
    pairs = zip(problem.items, plan.offsets, strict=True)
    laid = [[base + rectangle.offset for rectangle in item.rectangles] for item, base in pairs]
    reasons = _check_bases(problem, plan)
    if addresses is not None:
        reasons += _check_rigid(problem, plan, addresses)
        if [len(group) for group in addresses] == [len(group) for group in laid]:
            laid = [list(group) for group in addresses]
    for item in problem.items:
        reasons += _check_aliases(item)
    for scope in problem.scopes:
        reasons += _check_arena(problem, plan, laid, scope)
    return reasons


def _check_bases(problem: Problem, plan: Plan) -> list[str]:
    reasons = []
    for item, base in zip(problem.items, plan.offsets, strict=True):
        if base < 0:
            reasons.append(f"item {item.name!r} stands at {base}, expected 0 or more")
        if base % item.alignment:
            reasons.append(f"item {item.name!r} stands at {base}, not a multiple of {item.alignment}")
    return reasons


def _check_rigid(problem: Problem, plan: Plan, addresses: Addresses) -> list[str]:
    if len(addresses) != len(problem.items):
        return [f"there are addresses of {len(addresses)} items, expected {len(problem.items)}"]
    reasons = []
    for item, base, group in zip(problem.items, plan.offsets, addresses, strict=True):
        if len(group) != len(item.rectangles):
            reasons.append(
                f"item {item.name!r} has {len(group)} addresses for {len(item.rectangles)} rectangles"
            )
            continue
        for index, (rectangle, address) in enumerate(zip(item.rectangles, group, strict=True)):
            if address != base + rectangle.offset:
                reasons.append(
                    f"item {item.name!r} came apart: rectangle {index} stands at {address}, "
                    f"its base {base} and relative offset {rectangle.offset} put it at "
                    f"{base + rectangle.offset}"
                )
    return reasons


def _check_aliases(item: Item) -> list[str]:
    """Rectangles of an item that share bytes lie one in the other, or both inside a third."""
    reasons = []
    for i, a in enumerate(item.rectangles):
        for j, b in enumerate(item.rectangles[:i]):
            low, high = min(a.offset, b.offset), max(a.offset + a.nbytes, b.offset + b.nbytes)
            apart = (
                a.birth >= b.death
                or b.birth >= a.death
                or a.offset >= b.offset + b.nbytes
                or b.offset >= a.offset + a.nbytes
            )
            nested = (low, high) in ((a.offset, a.offset + a.nbytes), (b.offset, b.offset + b.nbytes))
            if not (apart or nested) and not any(
                c.offset <= low and high <= c.offset + c.nbytes for c in item.rectangles
            ):
                reasons.append(
                    f"item {item.name!r}: rectangles {j} and {i} share bytes, and neither lies inside "
                    "the other or both inside a parent"
                )
    return reasons


def _check_arena(problem: Problem, plan: Plan, laid: list[list[int]], scope: str) -> list[str]:
    reasons = []
    rows: list[tuple[int, int, int, int, int]] = []
    top = 0
    for index, item in enumerate(problem.items):
        if item.scope != scope:
            continue
        for rectangle, address in zip(item.rectangles, laid[index], strict=True):
            end = address + rectangle.nbytes
            top = max(top, end)
            if end > INT64_MAX or address < -INT64_MAX:
                reasons.append(f"item {item.name!r} ends at {end}, beyond 64 bits")
            elif rectangle.nbytes > 0:
                rows.append((address, end, rectangle.birth, rectangle.death, index))
    height = plan.heights.get(scope)
    if height is None:
        reasons.append(f"scope {scope!r} has no height in the plan")
    elif top > height:
        reasons.append(f"scope {scope!r} is used up to byte {top}, beyond its height {height}")
    if problem.capacity is not None and top > problem.capacity:
        reasons.append(f"scope {scope!r} is used up to byte {top}, beyond the capacity {problem.capacity}")
    bound = plan.lower_bounds.get(scope)
    if height is not None and bound is not None:
        if bound > height:
            reasons.append(f"scope {scope!r}: lower bound {bound} is above the height {height}")
        if plan.status is Status.LOWER_BOUND and bound != height:
            reasons.append(f"scope {scope!r}: height {height} is said to equal the lower bound {bound}")
    return reasons + _overlaps(problem, rows)


def _overlaps(problem: Problem, rows: list[tuple[int, int, int, int, int]]) -> list[str]:
    """Pairs of different items that hold one byte at one step.

    With the rectangles sorted by address, each one is compared with those that begin inside it.
    """
    if not rows:
        return []
    table: npt.NDArray[np.int64] = np.array(sorted(rows), dtype=np.int64)
    start, end, birth, death, owner = table.T
    behind = np.searchsorted(start, end, side="left")
    pairs: dict[tuple[int, int], str] = {}
    for i in range(len(rows)):
        rest = slice(i + 1, int(behind[i]))
        hit = (birth[rest] < death[i]) & (death[rest] > birth[i]) & (owner[rest] != owner[i])
        for j in (np.flatnonzero(hit) + i + 1).tolist():
            pair = (min(int(owner[i]), int(owner[j])), max(int(owner[i]), int(owner[j])))
            names = f"{problem.items[pair[0]].name!r} and {problem.items[pair[1]].name!r}"
            pairs.setdefault(
                pair,
                f"items {names} overlap at byte {start[j]}, step {max(birth[i], birth[j])}",
            )
    return list(pairs.values())
