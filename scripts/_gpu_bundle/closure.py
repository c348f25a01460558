"""The distributions that an installation of ours needs, as they are installed here."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection, Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def closure(requirements: Iterable[str], without: Collection[str] = ()) -> dict[str, str]:
    """Names and installed versions of all that ``requirements`` need, themselves included.

    Parameters
    ----------
    without : distributions that are left out, with what they alone need.

    Raises
    ------
    importlib.metadata.PackageNotFoundError : a distribution that is not installed here.
    """
    left_out = {canonicalize_name(name) for name in without}
    found: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        known = (name, frozenset(requirement.extras))
        if name in left_out or known in seen:
            continue
        seen.add(known)
        distribution = importlib.metadata.distribution(name)
        found[name] = distribution.version
        for text in distribution.requires or ():
            needed = Requirement(text)
            if any(_holds(needed, extra) for extra in ("", *requirement.extras)):
                waiting.append(needed)
    return dict(sorted(found.items()))


def _holds(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})
