"""Options of a compilation: one immutable value, checked when it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .core.policies import POLICIES, RULES, Policy, Rule
from .errors import InvalidInputError

_OFF = "off"
_FAMILIES = ("plain", "channels_last", "blocked")
CACHES = ("on_compile", "save_reload", "disabled")
_OUTSIDE = {"fingerprint": False}
"""Marks a field that decides nothing about the result: two compilations that differ in it are one."""


@dataclass(frozen=True)
class Options:
    """What a user can choose.

    Attributes
    ----------
    layouts : ``cost`` (default) chooses over the whole region; ``any`` takes what the library picks for each
        operator alone; ``channels_last``, ``blocked`` and ``plain`` use one layout wherever it is possible;
        ``naive`` also reorders around every operator and serves as a yardstick.
    tune : ``model`` (default) estimates what operators cost in each layout; ``measure`` times them on this
        machine.
    tune_seconds : what measuring may take, for the whole model.
    convolutions : ``cost`` (default) chooses an algorithm for each; ``direct``, ``winograd_f2`` and
        ``winograd_f4`` use that one wherever it is possible.
    max_relative_error : what the algorithms chosen for speed may add to the relative error (in the L2 norm)
        of the model's results, by their own statements.
    memory : ``reuse`` (default) lets values that are not alive together share bytes; ``no_reuse`` gives each
        its own, for comparison and debugging.  Symbolic shapes are planned at run time, always with reuse.
    order : ``keep`` (default) runs operators as the model states them; ``memory`` lets them run in an order
        that needs a smaller arena, where there is one, which may take longer.
    layers : what single operators get in place of what is chosen, by the names that the report prints:
        ``off`` leaves one to TVM; a layout (``nhwc``, ``nChw16c``, ``plain``, ``channels_last``,
        ``blocked``) is forced.  A mapping, or text such as ``conv2d_3=off,conv2d_4=nhwc``.
    deterministic : every call gives the same bits, in any process, and so does a second compile with
        ``tune=model``; ``Executable.determinism_lost`` says where that cannot be.
    opcheck : every call works each step out again in float64 and raises InternalError at the first that
        differs (see :mod:`tvm_mxplan.opcheck`); slow.  Not exported with a library.
    opcheck_folder : where that step is then written, for a replay; nothing is written without.
    cache : ``on_compile`` keeps finished compilations on disk and reads them again; ``save_reload`` (default)
        touches no disk, notes choices for ``save_cache`` and replays those of ``load_cache``; ``disabled``
        does neither.
    """

    layouts: Policy = "cost"
    tune: str = "model"
    tune_seconds: float = 5.0
    memory: str = "reuse"
    order: str = "keep"
    convolutions: Rule = "cost"
    max_relative_error: float = 1e-4
    layers: Mapping[str, str] = field(default_factory=dict, hash=False)
    deterministic: bool = False
    opcheck: bool = field(default=False, metadata=_OUTSIDE)
    opcheck_folder: str | None = field(default=None, metadata=_OUTSIDE)
    cache: str = field(default="save_reload", metadata=_OUTSIDE)

    def __post_init__(self) -> None:
        _one_of("layouts", self.layouts, POLICIES)
        _one_of("tune", self.tune, ("model", "measure"))
        _one_of("memory", self.memory, ("reuse", "no_reuse"))
        _one_of("order", self.order, ("keep", "memory"))
        _one_of("convolutions", self.convolutions, RULES)
        _number("tune_seconds", self.tune_seconds, "above 0", lambda x: x > 0)
        _number("max_relative_error", self.max_relative_error, "of at least 0", lambda x: x >= 0)
        _one_of("deterministic", self.deterministic, (True, False))
        _one_of("opcheck", self.opcheck, (True, False))
        _one_of("cache", self.cache, CACHES)
        if not isinstance(self.opcheck_folder, str | None):
            raise InvalidInputError(f"option opcheck_folder={self.opcheck_folder!r}; expected a path")
        object.__setattr__(self, "layers", _layers(self.layers))

    @property
    def layers_off(self) -> frozenset[str]:
        """Names of the operators that are left to TVM."""
        return frozenset(name for name, choice in self.layers.items() if choice == _OFF)

    @property
    def layer_layouts(self) -> dict[str, str]:
        """Layouts of single operators, by their names."""
        return {name: choice for name, choice in self.layers.items() if choice != _OFF}

    @classmethod
    def of(cls, options: Options | dict[str, Any] | None) -> Options:
        """Options from a mapping; InvalidInputError names an unknown field and the known ones."""
        if options is None:
            return cls()
        if isinstance(options, Options):
            return options
        if not isinstance(options, Mapping):
            kind = type(options).__name__
            raise InvalidInputError(f"options: expected an Options or a dict, got {kind}")
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise InvalidInputError(f"unknown option {unknown[0]!r}; the options are {', '.join(known)}")
        return cls(**options)

    def fingerprinted(self) -> dict[str, Any]:
        """The fields that a finished compilation depends on, by name; each field says whether it is one."""
        kept = [field.name for field in fields(self) if field.metadata.get("fingerprint", True)]
        values = {name: getattr(self, name) for name in kept}
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _layers(given: object) -> dict[str, str]:
    """The option ``layers`` as a mapping; InvalidInputError shows how it is written."""
    from .core.layout_names import layout_named

    if isinstance(given, str):
        pairs = [part.partition("=") for part in given.split(",") if part.strip()]
        given = {name.strip(): choice.strip() for name, _, choice in pairs}
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"option layers={given!r}; expected for example 'conv2d_3=off,conv2d_4=nhwc'")
    for name, choice in given.items():
        if choice in (_OFF, *_FAMILIES):
            continue
        try:
            layout_named(str(choice))
        except ValueError:
            raise InvalidInputError(
                f"option layers: {name}={choice!r}; expected off, {', '.join(_FAMILIES)} or a layout's name"
            ) from None
    return dict(given)


def _one_of(name: str, value: object, allowed: tuple[str | bool, ...]) -> None:
    if value not in allowed:
        raise InvalidInputError(f"option {name}={value!r}; expected one of {', '.join(map(str, allowed))}")


def _number(name: str, value: object, expected: str, accepts: Callable[[float], bool]) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not accepts(value):  # type: ignore[arg-type]
        raise InvalidInputError(f"option {name}={value!r}; expected a number {expected}")
