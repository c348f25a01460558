"""``save_cache`` and ``load_cache`` for libraries whose plans are made ahead for a device.

    json/plans        for who reads it: each plan's device and engine
    plans/<digest>    a plan by all that was asked: operation graph, device, rules for engines

Whoever asks the same of the same versions gets the plan without making it.  A plan for another graph, device
or rule has another digest, and is made.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

from ..byoc.engine import Engine
from ..core.fingerprint import Fingerprint
from ..errors import InvalidInputError
from .container import Entry, UnusableCache
from .kept_file import check_facts, write_file
from .outcome import CacheReport
from .safe_file import open_container
from .store import Store

_KIND = "plans"


def save_plans(filename: str | os.PathLike[str], engine: Engine) -> int:
    """Write the plans that this process made or loaded; see ``choices_file.save_cache``."""
    kept = engine.kept_plans()
    if not kept:
        raise InvalidInputError(f"{filename}: nothing to save; compile a model for {engine.name} first")
    facts = _facts(engine)
    fingerprint = Fingerprint()
    fingerprint.add(_KIND, [facts, sorted(kept)])
    listing = json.dumps([engine.plan_title(kept[name]) for name in sorted(kept)]).encode()
    entries = [Entry(_KIND, name, kept[name]) for name in sorted(kept)]
    try:
        write_file(Path(filename), fingerprint.hexdigest(), facts, [Entry("json", _KIND, listing), *entries])
    except (InvalidInputError, OSError) as error:
        warnings.warn(f"no cache was saved: {error}", RuntimeWarning, stacklevel=3)
        return 0
    return len(kept)


def load_plans(filename: str | os.PathLike[str], engine: Engine) -> int:
    """Read the plans that another process made; see ``choices_file.load_cache``."""
    path = Path(filename)
    try:
        container = open_container(path)
        container.verify()
        check_facts(container.facts, _facts(engine))
    except UnusableCache as error:
        warnings.warn(f"{path}: not used, all plans are made again: {error}", RuntimeWarning, stacklevel=3)
        return 0
    names = [entry.name for entry in container.entries if entry.kind == _KIND]
    engine.add_plans({name: bytes(container.read(_KIND, name)) for name in names})
    return len(names)


def _facts(engine: Engine) -> dict[str, Any]:
    return {"type": engine.name, "versions": engine.plan_versions()}


class PlansOnDisk:
    """The plans of a library in the cache's folder, around one compilation.

    Attributes
    ----------
    report : ``hit`` where every plan was there, ``miss`` where some were made.
    """

    def __init__(self, engine: Engine, store: Store) -> None:
        self._engine, self._store = engine, store
        self._path = store.folder / f"{engine.name}_plans.bin"
        if self._path.exists():
            load_plans(self._path, engine)
        self._before = set(engine.kept_plans())
        self.report = CacheReport()

    def keep(self) -> None:
        """Write what was made; a file that cannot be written is a warning."""
        made = len(self._engine.kept_plans().keys() - self._before)
        if not made:
            self.report = CacheReport("hit", "", self._path.name)
            return
        self._store.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stored = save_plans(self._path, self._engine)
        self.report = CacheReport("miss", f"{made} plan(s) made", self._path.name if stored else "")
