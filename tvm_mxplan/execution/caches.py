"""The process's caches: libraries' primitives, and weights in the layouts that primitives want.

All modules and threads share them.  What a loaded module uses is shared whatever the capacity, which limits
what is kept when its last user has gone; 0 switches a cache off, so that each module makes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from ..byoc import registry
from ..byoc.engine import Engine
from ..errors import InvalidInputError

CACHES = ("primitives", "weights")
_UNBOUNDED = 2**63 - 1
_MIB = 2**20


@dataclass(frozen=True)
class CacheStatistics:
    """Counters of one cache since the process began.

    Attributes
    ----------
    hits : found, also where another thread was just making it.
    misses : made; oneDNN's refusals count once, and are remembered.
    evictions : no longer kept.
    entries, bytes : kept now.  oneDNN does not tell what a primitive takes: its bytes count 0.
    most_entries, most_bytes : the capacity.
    """

    hits: int
    misses: int
    evictions: int
    entries: int
    bytes: int
    most_entries: int
    most_bytes: int


@dataclass(frozen=True)
class CacheCounts:
    """The activity of one of the process's caches meanwhile; other threads count too."""

    hits: int
    misses: int
    evictions: int

    def __str__(self) -> str:
        return f"{self.hits} found, {self.misses} made, {self.evictions} evicted"


def cache_statistics() -> dict[str, CacheStatistics]:
    """Counters by cache: ``primitives`` and ``weights``."""
    return {name: _statistics([counters for _, counters in _holders(name)]) for name in CACHES}


def counted() -> Callable[[], dict[str, CacheCounts]]:
    """Gives what the caches did between this call and the one of its result."""
    before = cache_statistics()

    def counts() -> dict[str, CacheCounts]:
        now = cache_statistics()
        return {
            name: CacheCounts(
                now[name].hits - then.hits,
                now[name].misses - then.misses,
                now[name].evictions - then.evictions,
            )
            for name, then in before.items()
        }

    return counts


def set_cache_capacity(cache: str, *, entries: int | None = None, bytes: int | None = None) -> None:
    """Bound what a cache keeps beyond use; what is over goes at once, least recently used first.

    Parameters
    ----------
    cache : ``primitives`` or ``weights``.
    entries, bytes : None leaves a bound as it is; 0 of either switches the cache off.

    Raises
    ------
    InvalidInputError : another name, or a bound that is no number from 0.
    """
    if cache not in CACHES:
        raise InvalidInputError(f"no cache {cache!r}; expected one of {', '.join(CACHES)}")
    for name, bound in (("entries", entries), ("bytes", bytes)):
        known = bound is None or (isinstance(bound, int) and not isinstance(bound, bool))
        if not known or not 0 <= (bound or 0) <= _UNBOUNDED:
            raise InvalidInputError(f"cache {cache}: {name}={bound!r}; expected a whole number from 0")
    for engine, now in _holders(cache):
        engine.set_cache_capacity(
            cache,
            now["most_entries"] if entries is None else entries,
            now["most_bytes"] if bytes is None else bytes,
        )


def _holders(cache: str) -> list[tuple[Engine, dict[str, int]]]:
    """The libraries that have a cache of that name, with its counters."""
    found = [(engine, engine.cache_counters(cache)) for engine in registry.engines()]
    return [(engine, counters) for engine, counters in found if counters]


def _statistics(counters: Sequence[Mapping[str, int]]) -> CacheStatistics:
    """Those of several libraries together; each has the capacity for itself."""
    names = [field.name for field in fields(CacheStatistics)]
    return CacheStatistics(**{name: sum(one[name] for one in counters) for name in names})


def set_capacities(primitives: int | None, weights_mib: int | None) -> None:
    """Set capacities as options and environment variables state them; None leaves one as it is."""
    if primitives is not None:
        set_cache_capacity("primitives", entries=primitives)
    if weights_mib is not None:
        set_cache_capacity("weights", bytes=weights_mib * _MIB)
