"""The decisions for each operator of a model: the implementations it could have, and why others are out.

conv2d_3 runs in onednn: winograd_f4, acdb, 61.3 us, scratchpad 1,048,576 bytes, error 2e-06
  out  onednn direct, brgconv:avx512_core, 98.0 us  winograd_f4 costs less
  out  onednn winograd_f4, aBcd16b                  convolution: Winograd takes images channels last
  out  llvm                                         after onednn in the order of preference
  from Conv /layer1/conv
relu_3 runs inside conv2d_3, in onednn
  from Relu /layer1/relu
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from ..description import Refused
from .origin import Origin, Origins, told

Source = Literal["", "model", "measured"]
SOURCES: tuple[Source, ...] = get_args(Source)


@dataclass(frozen=True)
class Candidate:
    """One implementation that an operator could have.

    Attributes
    ----------
    backend : who would run it, as targets name it; '' where a stage knows of one backend only.
    implementation : the library's name for its code, '' if it was not asked.
    layouts : of its sources, then of its result; empty where nothing was asked about layouts.
    algorithm : of a convolution, '' for all others.
    cost_us : microseconds; None where nothing states a cost.
    source : where the cost comes from.
    relative_error : what it adds to the rounding of plain float32 sums.
    in_place : whether it writes over one of its sources, or stands where it has to already.
    refused : implementations that the library would have run in its place, were they right.
    out : why it was not taken; '' for the one that was.
    """

    backend: str = ""
    implementation: str = ""
    layouts: tuple[str, ...] = ()
    algorithm: str = ""
    cost_us: float | None = None
    source: Source = ""
    relative_error: float = 0.0
    scratchpad_bytes: int = 0
    in_place: bool = False
    refused: tuple[Refused, ...] = ()
    out: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fields that are not as by default: there are thousands of candidates in a model."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Candidate:
        """Inverse of :meth:`to_json`."""
        refused = tuple(Refused(*one) for one in data.get("refused", ()))
        return cls(**{**data, "layouts": tuple(data.get("layouts", ())), "refused": refused})

    def words(self) -> list[str]:
        """Lists the candidate's known properties; scratchpads of what was not taken are left out."""
        found = [self.algorithm, self.implementation, " -> ".join(dict.fromkeys(self.layouts))]
        if self.cost_us is not None:
            found.append(f"{self.cost_us:,.1f} us" + (" measured" if self.source == "measured" else ""))
        if self.in_place:
            found.append("in place")
        if self.scratchpad_bytes > 0 and not self.out:
            found.append(f"scratchpad {self.scratchpad_bytes:,} bytes")
        if self.relative_error:
            found.append(f"error {self.relative_error:.2g}")
        found += [f"{one.implementation} refused ({one.reason})" for one in self.refused if not self.out]
        return [word for word in dict.fromkeys(found) if word]


Weighed = dict[str, list[Candidate]]
"""The candidates weighed for steps of a library, by the steps' names."""


@dataclass(frozen=True)
class DispatchDecision:
    """One operator of the model.

    Attributes
    ----------
    operator, kind : its name and what it is: ``conv2d_3``, ``conv2d``.
    candidates : by preference, the chosen one among them; the only one that is not out.
    runs : name of the step that computes it, which is another operator's where it is fused; '' where nothing
        is left to run or TVM's own code runs it.
    note : what there is to say of a chosen one that has no code of its own.
    origins : what in the user's model it comes from.
    """

    operator: str
    kind: str
    candidates: tuple[Candidate, ...]
    runs: str = ""
    note: str = ""
    origins: Origins = ()

    def __post_init__(self) -> None:
        kept = sum(not candidate.out for candidate in self.candidates)
        if kept != 1:
            raise ValueError(f"{self.operator}: {kept} candidates are not out, expected one")

    @property
    def chosen(self) -> Candidate:
        return next(candidate for candidate in self.candidates if not candidate.out)

    @property
    def is_fused(self) -> bool:
        """True if it runs inside another operator's step."""
        return self.runs not in ("", self.operator)

    def to_json(self) -> dict[str, Any]:
        candidates = [candidate.to_json() for candidate in self.candidates]
        row = {"operator": self.operator, "kind": self.kind, "runs": self.runs, "note": self.note}
        known = {"origins": [[one.name, one.kind] for one in self.origins]} if self.origins else {}
        return {**row, **known, "candidates": candidates}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DispatchDecision:
        """Inverse of :meth:`to_json`."""
        candidates = tuple(Candidate.from_json(candidate) for candidate in data["candidates"])
        origins = tuple(Origin(*one) for one in data.get("origins", ()))
        return cls(data["operator"], data["kind"], candidates, data["runs"], data["note"], origins)

    def __str__(self) -> str:
        chosen = self.chosen
        place = f"inside {self.runs}, in {chosen.backend}" if self.is_fused else f"in {chosen.backend}"
        facts = self.note or ", ".join(chosen.words())
        lines = [f"{self.operator} runs {place}{': ' if facts else ''}{facts}"]
        others = [candidate for candidate in self.candidates if candidate.out and not self.is_fused]
        names = [f"{other.backend} {', '.join(other.words())}".strip() for other in others]
        width = max(map(len, names), default=0)
        lines += [f"  out  {name:{width}}  {o.out}" for name, o in zip(names, others, strict=True)]
        lines += [f"  from {told(self.origins)}"] if self.origins else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Dispatch:
    """The decisions of a whole model.

    Attributes
    ----------
    order : implementations by preference, as the target and the machine have them.
    absent : why others that the target names are not here, by name.
    decisions : in the order of the model's operators.
    """

    order: tuple[str, ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    decisions: tuple[DispatchDecision, ...] = ()

    def __iter__(self) -> Iterator[DispatchDecision]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, operator: str) -> DispatchDecision:
        """The decision on the operator of this name; KeyError names those that are close."""
        for decision in self.decisions:
            if decision.operator == operator:
                return decision
        names = [decision.operator for decision in self.decisions]
        close = difflib.get_close_matches(operator, names, n=4, cutoff=0.5) or names[:4]
        hint = f"the nearest are {', '.join(close)}" if close else "no operator was decided on"
        raise KeyError(f"the model has no operator {operator!r}; {hint}")

    def about(self, name: str) -> list[DispatchDecision]:
        """The decision on an operator, or those on what comes from a part of the model of this name.

        KeyError names operators that are close.
        """
        if any(decision.operator == name for decision in self.decisions):
            return [self[name]]
        found = [one for one in self.decisions if any(origin.is_called(name) for origin in one.origins)]
        return found or [self[name]]

    def to_json(self) -> dict[str, Any]:
        decisions = [decision.to_json() for decision in self.decisions]
        return {"order": list(self.order), "absent": dict(self.absent), "decisions": decisions}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Dispatch:
        """Inverse of :meth:`to_json`."""
        decisions = tuple(DispatchDecision.from_json(decision) for decision in data["decisions"])
        return cls(tuple(data["order"]), tuple(data["absent"].items()), decisions)

    def __str__(self) -> str:
        lines = [f"order of preference: {', '.join(self.order) or 'TVM alone'}"]
        lines += [f"  absent  {name}: {reason}" for name, reason in self.absent]
        if not self.decisions:
            lines.append("TVM runs every operator; nothing was decided")
        return "\n".join([*lines, *(str(decision) for decision in self.decisions)])


@dataclass(frozen=True)
class Trial:
    """A whole plan with another implementation for some kinds of operators, beside the plan as preferred.

    Attributes
    ----------
    kinds : of the operators, in order.
    ratio : what it was worth, of what the plan as preferred was; less is better.
    taken : whether it is what is compiled.
    """

    implementation: str
    kinds: tuple[str, ...]
    ratio: float
    taken: bool

    def __str__(self) -> str:
        kinds = ", ".join(self.kinds)
        return f"whole plan with {kinds} in {self.implementation} measured {self.ratio:.3f} times as long"


def is_operator_name(text: str) -> bool:
    """True for ``conv2d_3``, False for ``conv2d``: whether options mean one operator or all of a kind."""
    return text.rpartition("_")[2].isdecimal()
