"""The one place that reads environment variables; docs/using/options.md lists them.

A variable of ours that says nothing we know is InvalidInputError, never taken for one that is not set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import InvalidInputError

_SPIN_COUNT = "3000"
_POOL_SPIN_COUNT = "100"

VARIABLES = (
    "TVM_MXPLAN_DISABLE",
    "TVM_MXPLAN_AUTOTUNE",
    "TVM_MXPLAN_MACHINE",
    "TVM_MXPLAN_DEBUG",
    "TVM_MXPLAN_FEWER_THREADS",
    "TVM_MXPLAN_OPCHECK_DIR",
    "TVM_MXPLAN_PRIMITIVE_CACHE",
    "TVM_MXPLAN_WEIGHTS_CACHE",
    "TVM_MXPLAN_CACHE_DIR",
    "TVM_MXPLAN_CACHE_BYTES",
    "TVM_DEVICE_BACKEND_AUTOLOAD",
    "TVM_USE_RUNTIME_LIB",
    "TVM_NUM_THREADS",
    "TVM_BIND_THREADS",
    "TVM_THREAD_POOL_SPIN_COUNT",
    "OMP_NUM_THREADS",
    "GOMP_SPINCOUNT",
    "OMP_WAIT_POLICY",
    "CXX",
)
"""Those with our name are ours; TVM and OpenMP read the others, and export links with CXX.

Variables that a library reads are among its engine's answers.
"""


def disabled() -> bool:
    """``TVM_MXPLAN_DISABLE=1``: compile as stock TVM does, with no region of ours."""
    return _is_on("TVM_MXPLAN_DISABLE", unset="0")


def autotune() -> str:
    """``TVM_MXPLAN_AUTOTUNE=0|1|2``: the option ``tune`` where it is not given; ``model`` if unset."""
    text = os.environ.get("TVM_MXPLAN_AUTOTUNE") or "1"
    levels = {"0": "off", "1": "model", "2": "measure"}
    if text not in levels:
        raise InvalidInputError(f"TVM_MXPLAN_AUTOTUNE={text!r}; expected 0 (off), 1 (model) or 2 (measure)")
    return levels[text]


def machine() -> str:
    """``TVM_MXPLAN_MACHINE=measured|default|<file>``: the option ``machine`` where it is not given."""
    return os.environ.get("TVM_MXPLAN_MACHINE") or "measured"


def debug_memory() -> bool:
    """``TVM_MXPLAN_DEBUG=memory``: every run checks each step's memory."""
    return "memory" in _checks()


def debug_opcheck() -> bool:
    """``TVM_MXPLAN_DEBUG=opcheck``: every call of an executable checks each step's numbers."""
    return "opcheck" in _checks()


def opcheck_folder() -> str | None:
    """``TVM_MXPLAN_OPCHECK_DIR``: where the first step that differs is written, None for nowhere."""
    return os.environ.get("TVM_MXPLAN_OPCHECK_DIR") or None


def _checks() -> set[str]:
    """Names of the checks in ``TVM_MXPLAN_DEBUG``."""
    text = os.environ.get("TVM_MXPLAN_DEBUG", "")
    named = {word.strip() for word in text.split(",")} - {""}
    if not named <= {"memory", "opcheck"}:
        raise InvalidInputError(
            f"TVM_MXPLAN_DEBUG={text!r}; expected memory, opcheck, or memory,opcheck for both"
        )
    return named


def check_fewer_threads() -> None:
    """``TVM_MXPLAN_FEWER_THREADS=0|1``, which the runtime reads by itself: whether that is what it says."""
    _is_on("TVM_MXPLAN_FEWER_THREADS", unset="1")


def _is_on(name: str, unset: str) -> bool:
    text = os.environ.get(name) or unset
    if text not in ("0", "1"):
        raise InvalidInputError(f"{name}={text!r}; expected 0 or 1")
    return text == "1"


def primitive_cache() -> int | None:
    """``TVM_MXPLAN_PRIMITIVE_CACHE=<entries>``: how many primitives are kept beyond use; 0 for no cache."""
    return _count("TVM_MXPLAN_PRIMITIVE_CACHE")


def weights_cache_mib() -> int | None:
    """``TVM_MXPLAN_WEIGHTS_CACHE=<MiB>``: packed weights that are kept beyond use; 0 for no cache."""
    return _count("TVM_MXPLAN_WEIGHTS_CACHE")


def _count(name: str) -> int | None:
    text = os.environ.get(name, "")
    if not text:
        return None
    if not text.isdecimal():
        raise InvalidInputError(f"{name}={text!r}; expected a whole number from 0")
    return int(text)


def cache_folder() -> Path | None:
    """``TVM_MXPLAN_CACHE_DIR``, else a folder in the user's cache home; None for a user without a home."""
    stated = os.environ.get("TVM_MXPLAN_CACHE_DIR")
    if stated and not os.path.isabs(stated):
        raise InvalidInputError(f"TVM_MXPLAN_CACHE_DIR={stated!r}; expected an absolute path")
    home = os.environ.get("XDG_CACHE_HOME", "")
    folder = stated or os.path.join(
        home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "tvm_mxplan"
    )
    return Path(folder) if os.path.isabs(folder) else None


def cache_bytes() -> int:
    """``TVM_MXPLAN_CACHE_BYTES``: what the cache's files may hold together; 4 GiB if unset."""
    count = _count("TVM_MXPLAN_CACHE_BYTES")
    return 4 << 30 if count is None else count


@contextmanager
def brief_spinning() -> Iterator[None]:
    """Let GNU OpenMP, if it is loaded inside, wait some microseconds for work and then sleep.

    Its default, milliseconds, gains nothing between primitives that follow at once, and costs a busy
    machine whole time slices.  A user's own ``GOMP_SPINCOUNT`` or ``OMP_WAIT_POLICY`` stands.
    """
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = _SPIN_COUNT
    try:
        yield
    finally:
        os.environ.pop("GOMP_SPINCOUNT", None)


def settle_pool() -> None:
    """Let the workers of TVM's thread pool wait some microseconds for kernels that follow at once.

    Their default is 300,000 turns, each of which yields the processor: a tenth of a second or more in which
    oneDNN's threads have to share it.  The pool reads the count when it first starts, if ever, so it stays
    set.  A user's own ``TVM_THREAD_POOL_SPIN_COUNT`` stands.
    """
    os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", _POOL_SPIN_COUNT)


def those_set(names: Iterable[str]) -> dict[str, str]:
    """Returns the variables of ``names`` that are set, such as those by which a library chooses kernels."""
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def settings(libraries: Iterable[str] = ()) -> dict[str, str | None]:
    """The variables that change what a compiled model does, with their values; those of libraries by name."""
    return {name: os.environ.get(name) for name in (*VARIABLES, *libraries)}
