"""The planner's C++ library from Python: plain arrays through ctypes, no other library.

A call releases the interpreter's lock. It runs in a thread of its own, so that an interrupt of the caller
(Ctrl-C) ends the search; a call shares nothing with another one.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..instance import Instance

LIBRARY = "libmxplan_planner.so"
_Result = TypeVar("_Result")


class PlannerLibraryError(RuntimeError):
    """The planner's library is missing or cannot be loaded."""


@dataclass(frozen=True, slots=True)
class Request:
    """Says what to look for, and what may be spent on that.

    Parameters
    ----------
    floor : int
        Nothing below this height is possible.
    goal : int
        Nothing below this height is of use.
    capacity : int
        A height that matters more than the others, -1 for none.
    fit_only : bool
        Stop at the capacity.
    max_nodes : int
        Placements of the exact search.
    seconds : float
        Negative for no limit.
    """

    floor: int
    goal: int
    capacity: int
    fit_only: bool
    max_nodes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Bases of the items, the height that they reach, and whether nothing lower is possible.

    A single search that finds no plan answers the height -1, and ``proven`` if there is none.
    """

    bases: list[int]
    height: int
    proven: bool
    nodes: int


class _Instance(ctypes.Structure):
    _fields_ = [
        ("items", ctypes.c_int64),
        ("sections", ctypes.c_int64),
        ("heads", ctypes.c_void_p),
        ("blocks", ctypes.c_void_p),
        ("alignment", ctypes.c_void_p),
    ]


class _Request(ctypes.Structure):
    _fields_ = [
        ("floor", ctypes.c_int64),
        ("goal", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
        ("fit_only", ctypes.c_int64),
        ("max_nodes", ctypes.c_int64),
        ("seconds", ctypes.c_double),
        ("stop", ctypes.POINTER(ctypes.c_int32)),
    ]


class _Answer(ctypes.Structure):
    _fields_ = [("height", ctypes.c_int64), ("proven", ctypes.c_int64), ("nodes", ctypes.c_int64)]


def plan(instance: Instance, request: Request) -> Answer:
    """Quick plans first, then the exact search."""
    return _call("mxplan_plan", instance, request)


def search(instance: Instance, request: Request, order: int, tie: int) -> Answer:
    """One exact search for a plan of the request's capacity.

    Parameters
    ----------
    instance, request :
        The problem, of which the search is for ``request.capacity``.
    order : int
        Number of an order of the items; -1 for the search for groups that interlock.
    tie : int
        0 for the order alone, 1 for the tightest section first, 2 for the section that was the fullest
        when its part was made.
    """
    return _call("mxplan_search", instance, request, ctypes.c_int64(order), ctypes.c_int64(tie))


@functools.cache
def _library() -> ctypes.CDLL:
    path = Path(__file__).with_name(LIBRARY)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise PlannerLibraryError(
            f"{path}: the planner's library cannot be loaded ({error}); install the package again"
        ) from error


def _call(name: str, instance: Instance, request: Request, *more: Any) -> Answer:
    function = getattr(_library(), name)
    counts = [len(shape.blocks) for shape in instance.shapes]
    heads = np.cumsum([0, *counts], dtype=np.int64)
    blocks = np.array([block for shape in instance.shapes for block in shape.blocks], dtype=np.int64)
    alignment = np.array([shape.alignment for shape in instance.shapes], dtype=np.int64)
    bases = np.zeros(len(counts), dtype=np.int64)
    stop = ctypes.c_int32(0)
    given = _Instance(len(counts), instance.sections, *map(_address, (heads, blocks, alignment)))
    asked = _Request(
        request.floor,
        request.goal,
        request.capacity,
        int(request.fit_only),
        request.max_nodes,
        request.seconds,
        ctypes.pointer(stop),
    )
    answer = _Answer()

    def call() -> int:
        code: int = function(
            ctypes.byref(given),
            ctypes.byref(asked),
            *more,
            ctypes.c_void_p(_address(bases)),
            ctypes.byref(answer),
        )
        return code

    if _interruptible(call, stop):
        raise MemoryError(f"not enough memory to plan {len(counts)} items")
    return Answer(bases.tolist(), answer.height, bool(answer.proven), answer.nodes)


def _address(array: npt.NDArray[np.int64]) -> int:
    return int(array.ctypes.data)


def _interruptible(call: Callable[[], _Result], stop: ctypes.c_int32) -> _Result:
    """Result of ``call``, which runs in a thread that ends soon after ``stop`` is set."""
    results: list[_Result] = []
    thread = threading.Thread(target=lambda: results.append(call()), name="planner")
    thread.start()
    try:
        thread.join()
    except BaseException:
        stop.value = 1
        thread.join()
        raise
    (result,) = results
    return result
