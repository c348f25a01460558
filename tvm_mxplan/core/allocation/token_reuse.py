"""Computes the bytes that stock TVM's reuse of storage takes: the yardstick beside the lower bound.

The algorithm is that of Relax's ``StaticPlanBlockMemory`` (apache/tvm,
src/relax/transform/static_plan_block_memory.cc), written anew for plain data.  Buffers become *tokens*, whole
storages without offsets inside.  In the order of the steps each buffer takes a free token, and gives it back
after its last step:

1. the smallest free token of at least its size, and at most 16 times it;
2. else the largest free token below its size, and at least a 16th of it, which grows;
3. else a new token.

The height is the sum of all tokens.  TVM knows no views at fixed distances: an item is one buffer over its
whole life.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field

from .problem import Item, Problem

_RANGE = 16


@dataclass(order=True, slots=True)
class _Token:
    nbytes: int
    number: int = field(compare=False)  # equal sizes are taken in the order in which they were freed


def token_reuse(problem: Problem) -> int:
    """Bytes of all tokens, scopes together."""
    return sum(
        _tokens_of([item for item in problem.items if item.scope == scope]) for scope in problem.scopes
    )


def _tokens_of(items: list[Item]) -> int:
    tokens: list[_Token] = []
    free: list[_Token] = []
    due: dict[int, list[_Token]] = defaultdict(list)
    for item in sorted(items, key=lambda item: item.birth):
        for death in sorted(death for death in due if death <= item.birth):
            for token in due.pop(death):
                insort(free, token)
        taken = _take(free, item.extent)
        if taken is None:
            taken = _Token(item.extent, len(tokens))
            tokens.append(taken)
        due[item.death].append(taken)
    return sum(token.nbytes for token in tokens)


def _take(free: list[_Token], nbytes: int) -> _Token | None:
    begin = bisect_left(free, nbytes // _RANGE, key=lambda token: token.nbytes)
    middle = bisect_left(free, nbytes, key=lambda token: token.nbytes)
    end = bisect_right(free, nbytes * _RANGE, key=lambda token: token.nbytes)
    if middle != end:
        return free.pop(middle)
    if middle != begin:
        token = free.pop(middle - 1)
        token.nbytes = nbytes
        return token
    return None
