"""The planner's library from Python: what it is handed, what it answers, and how an interrupt ends it."""

from __future__ import annotations

import ctypes
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from allocation_cases import single

from tvm_mxplan.core.allocation import Item, Problem, Rectangle, native
from tvm_mxplan.core.allocation.instance import Instance, instances
from tvm_mxplan.core.allocation.native import Answer, Request

ASKED = Request(floor=11, goal=12, capacity=13, fit_only=True, max_nodes=14, seconds=1.5)


def instance() -> Instance:
    group = Item("group", (Rectangle(0, 2, 0, 3), Rectangle(1, 4, 5, 7)), 4)
    (found,) = instances(Problem((group, single("one", 1, 3, 2, 8))), "global")
    return found


def library(monkeypatch: pytest.MonkeyPatch, code: int = 0) -> list[dict[str, object]]:
    """The arguments that a library in the planner's place is given; its answer is always the same."""
    given: list[dict[str, object]] = []

    def array(address: int, count: int) -> list[int]:
        return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address)).tolist()

    def answering(name: str) -> object:
        def function(problem, request, *more) -> int:  # type: ignore[no-untyped-def]
            *numbers, bases, answer = more
            told, asked = problem._obj, request._obj
            heads = array(told.heads, told.items + 1)
            given.append(
                {
                    "name": name,
                    "items": (told.items, told.sections, heads),
                    "blocks": array(told.blocks, 4 * heads[-1]),
                    "alignment": array(told.alignment, told.items),
                    "request": [getattr(asked, field) for field, _ in asked._fields_[:-1]],
                    "stop": asked.stop.contents.value,
                    "numbers": [number.value for number in numbers],
                }
            )
            (ctypes.c_int64 * 2).from_address(bases.value)[:] = [8, 16]
            answer._obj.height, answer._obj.proven, answer._obj.nodes = 40, 1, 3
            return code

        return function

    functions = {name: answering(name) for name in ("mxplan_plan", "mxplan_search")}
    monkeypatch.setattr(native, "_library", lambda: SimpleNamespace(**functions))
    return given


def test_all_of_a_question_reaches_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    given = library(monkeypatch)
    asked = instance()
    assert native.plan(asked, ASKED) == native.search(asked, ASKED, 5, 6) == Answer([8, 16], 40, True, 3)
    same = {
        "items": (2, asked.sections, [0, len(asked.shapes[0].blocks), 3]),
        "blocks": [number for shape in asked.shapes for block in shape.blocks for number in block],
        "alignment": [shape.alignment for shape in asked.shapes],
        "request": [11, 12, 13, 1, 14, 1.5],
        "stop": 0,
    }
    assert given == [
        {"name": "mxplan_plan", "numbers": [], **same},
        {"name": "mxplan_search", "numbers": [5, 6], **same},
    ]


def test_no_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch, code=1)
    with pytest.raises(MemoryError, match="to plan 2 items"):
        native.plan(instance(), ASKED)


def test_an_interrupt_stops_the_search_and_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, seen = ctypes.c_int32(0), []
    interrupts = iter([KeyboardInterrupt()])
    join = threading.Thread.join

    def search() -> int:
        for _ in range(5000):
            if stop.value:
                break
            time.sleep(0.001)
        seen.append(stop.value)
        return 0

    def interrupted(thread: threading.Thread) -> None:
        for interrupt in interrupts:
            raise interrupt
        join(thread)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        native._interruptible(search, stop)
    assert seen == [1]


def test_a_library_that_is_not_there_is_named(monkeypatch) -> None:
    monkeypatch.setattr(native, "LIBRARY", "libnone.so")
    with pytest.raises(
        native.PlannerLibraryError, match=r"libnone\.so: the planner's library cannot be loaded"
    ):
        native._library.__wrapped__()
