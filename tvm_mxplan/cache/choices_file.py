"""``save_cache`` and ``load_cache``: what this process chose, in a file for another process to replay.

    json/choices          for who reads it: each region's steps with implementation and layouts
    algorithms/<digest>   a region's program with the algorithms of its convolutions, in its own bytes
    layouts/<digest>      the same, laid out
    dispatch/<digest>     which kinds of a model's operators TVM runs, where that was measured

A file that cannot be written or used costs a warning, never a run: what it would have said is decided again.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

from ..byoc import registry
from ..byoc.engine import Engine
from ..core.decisions.choices import DISPATCH, KINDS, Key
from ..core.fingerprint import Fingerprint
from ..core.program import codec
from ..core.program import program as ir
from ..errors import InvalidInputError, UnsupportedError
from .container import Entry, UnusableCache
from .kept_file import check_facts, write_file
from .key.surroundings import shared_surroundings
from .plans_file import load_plans, save_plans
from .safe_file import open_container
from .session import SESSION

_HERE = "mkldnn"
_OTHERS = {
    spelling: library for spelling, library in registry.spellings().items() if library not in registry.DEFAULT
}
_TENSORRT = (
    "this build has no TensorRT: its libraries are in no package that a build could depend on; "
    "its file would keep serialized engines"
)
TYPES = (*_OTHERS, "tensorrt", _HERE)


def save_cache(filename: str | os.PathLike[str], type: str) -> int:
    """Write what this process chose for the regions it compiled, those of static shapes.

    Parameters
    ----------
    filename : the file to write; it appears whole or not at all.
    type : ``mkldnn`` for oneDNN; ``cudnn`` for execution plans, whatever shapes regions have; ``tensorrt``
        has no files.

    Returns
    -------
    count : regions, or plans, in the file; 0, after a warning, where it could not be written.

    Raises
    ------
    ValueError : another type.
    UnsupportedError : a type that this build has nothing to keep for, or only regions with symbolic shapes
        were compiled.
    InvalidInputError : nothing was compiled yet, or with ``cache="disabled"``.
    """
    engine = _keeper(type)
    if engine is not None:
        return save_plans(filename, engine)
    made = SESSION.made()
    regions = [key for key in sorted(made) if key.kind == "layouts"]
    if not regions and SESSION.symbolic:
        raise UnsupportedError(f"{filename}: choices are kept for static shapes only; state all shapes")
    if not regions:
        raise InvalidInputError(
            f"{filename}: nothing to save; compile a model first, not with cache='disabled'"
        )
    facts = {"type": type, **shared_surroundings()}
    fingerprint = Fingerprint()
    fingerprint.add("choices", [facts, sorted(made)])
    listing = json.dumps([_readable(key, made[key]) for key in regions]).encode()
    entries = [Entry(*key, made[key]) for key in sorted(made)]
    try:
        write_file(
            Path(filename), fingerprint.hexdigest(), facts, [Entry("json", "choices", listing), *entries]
        )
    except (InvalidInputError, OSError) as error:
        warnings.warn(f"no cache was saved: {error}", RuntimeWarning, stacklevel=2)
        return 0
    return len(regions)


def load_cache(filename: str | os.PathLike[str], type: str) -> int:
    """Read what another process chose; compilations of the same regions then replay it.

    Parameters
    ----------
    filename : what ``save_cache`` wrote.
    type : as for ``save_cache``.

    Returns
    -------
    count : regions, or plans, that are now known; 0, after a warning with the reason, where the file is
        missing, damaged, or was made by other versions or on another machine.

    Raises
    ------
    ValueError : another type.
    UnsupportedError : a type that this build has nothing to keep for.
    """
    engine = _keeper(type)
    if engine is not None:
        return load_plans(filename, engine)
    path = Path(filename)
    try:
        container = open_container(path)
        container.verify()
        check_facts(container.facts, {"type": type, **shared_surroundings()})
    except UnusableCache as error:
        warnings.warn(f"{path}: not used, all is chosen again: {error}", RuntimeWarning, stacklevel=2)
        return 0
    entries = [entry for entry in container.entries if entry.kind in (*KINDS, DISPATCH)]
    keys = [Key(entry.kind, entry.name) for entry in entries]
    SESSION.add_loaded({key: bytes(container.read(*key)) for key in keys}, path.name)
    return sum(key.kind == "layouts" for key in keys)


def _keeper(type: str) -> Engine | None:
    """The library that keeps plans for devices, where the type names one; errors for types without files."""
    if type not in TYPES:
        raise ValueError(f"cache type {type!r}; expected one of {', '.join(TYPES)}")
    if type == "tensorrt":
        raise UnsupportedError(f"cache type {type}: {_TENSORRT}")
    if type not in _OTHERS:
        return None
    engine = registry.engine(_OTHERS[type])
    if not engine.keeps_plans:
        raise UnsupportedError(f"cache type {type}: this build keeps nothing of {_OTHERS[type]} in files")
    return engine


def _readable(key: Key, data: bytes) -> dict[str, Any]:
    program = codec.decode(data)
    steps = [_step(program, step) for step in program.steps]
    return {"key": key.digest, "region": program.name, "steps": steps}


def _step(program: ir.Program, step: ir.Step) -> list[Any]:
    layouts = [program.values[o.value].layout for o in step.operands if o.role in ("src", "dst")]
    return [step.name, step.kind, step.implementation, layouts]
