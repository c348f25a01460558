"""The record of a tuning run, as plain data that prints, saves and loads: ``Report.tuning``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TuningReport:
    """The extent to which a choice was measured.

    Attributes
    ----------
    strategy : the option ``tune_for``.
    unit : of the values in ``plans``.
    measured : measurements made now, by stage: ``operators``, ``groups``, ``dispatch`` and ``plans``.
    known : questions that records answered, by stage.
    modelled : questions left to the model since the budget was spent, by stage.
    seconds : spent on measuring, whole plans with their compilation.
    plans : whole plans with their values, the one that is used first; equal programs share one.
    chosen : the name of the plan that is used, '' where none were compared.
    notes : what could not be done, and files that were or were not used.
    dispatch : whole plans with some kinds of operators in TVM, and the one as preferred; the taken one first.
    """

    strategy: str
    unit: str
    measured: dict[str, int]
    known: dict[str, int]
    modelled: dict[str, int]
    seconds: float
    plans: tuple[tuple[str, float], ...] = ()
    chosen: str = ""
    notes: tuple[str, ...] = ()
    dispatch: tuple[tuple[str, float], ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> TuningReport | None:
        """Inverse of ``dataclasses.asdict``."""
        if data is None:
            return None
        rows = {key: tuple((name, value) for name, value in data[key]) for key in ("plans", "dispatch")}
        return cls(**{**data, **rows, "notes": tuple(data["notes"])})

    def __str__(self) -> str:
        found = {"measured": self.measured, "known": self.known, "by model": self.modelled}
        counts = [f"{sum(stages.values())} {word}" for word, stages in found.items()]
        lines = [f"tuned for {self.strategy} in {self.seconds:.1f} s: {', '.join(counts)}"]
        used = (self.chosen, *(name for name, _ in self.dispatch[:1]))
        for name, value in (*self.dispatch, *self.plans):
            mark = "  <- used" if name in used else ""
            lines.append(f"  {value:14,.1f} {self.unit}  {name}{mark}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])
