"""Choices of this process: those its compilations made, for ``save_cache``, and those that were loaded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.decisions.choices import Choices, Key
from ..core.fingerprint import Plain

CAPACITY = 1024
"""Choices, of which a region has two of some kilobytes each.  The oldest go first."""


@dataclass
class Session:
    """Safe to use from many threads.

    Attributes
    ----------
    source : name of the file that was loaded last, '' before any.
    symbolic : regions whose choices are not kept, since their shapes are symbolic.
    """

    source: str = ""
    symbolic: int = 0
    _made: OrderedDict[Key, bytes] = field(default_factory=OrderedDict)
    _loaded: OrderedDict[Key, bytes] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def choices(self, context: Mapping[str, Plain]) -> Choices:
        """For one compilation: what was loaded is known, what the process itself decided is not."""
        with self._lock:
            return Choices(context, dict(self._loaded), self.source)

    def keep(self, choices: Choices) -> None:
        """Take over what a compilation decided."""
        with self._lock:
            self.symbolic += choices.symbolic
            _add(self._made, choices.made)

    def add_loaded(self, decided: Mapping[Key, bytes], source: str) -> None:
        with self._lock:
            self.source = source
            _add(self._loaded, decided)

    def made(self) -> dict[Key, bytes]:
        with self._lock:
            return dict(self._made)


SESSION = Session()


def _add(kept: OrderedDict[Key, bytes], new: Mapping[Key, bytes]) -> None:
    for key, data in new.items():
        kept[key] = data
        kept.move_to_end(key)
    while len(kept) > CAPACITY:
        kept.popitem(last=False)
