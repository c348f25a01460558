"""Results of holding a compilation's kernels against an independent implementation, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Outcome: TypeAlias = Literal["agreed", "differs", "unchecked"]


@dataclass(frozen=True)
class Checked:
    """The result for one kernel; ``reason`` is why it did not agree, or could not be checked."""

    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True)
class Refusal:
    """A kernel that did not agree.

    Attributes
    ----------
    step : the first step of the model that would have run it, '' where it was refused earlier.
    kernel : kind, shapes, layouts and post-ops.
    descriptor : the library's text for the step, by which it refuses.
    implementation : what is refused.
    finding : what was wrong.
    """

    step: str
    kernel: str
    descriptor: str
    implementation: str
    finding: str

    @property
    def reason(self) -> str:
        """The reason that reports give for the implementation from then on."""
        return f"wrong on this machine: {self.finding}"

    def __str__(self) -> str:
        where = f"{self.step}: " if self.step else ""
        return f"{where}{self.implementation} refused for {self.kernel}: {self.finding}"


@dataclass(frozen=True)
class Verification:
    """The extent to which the kernels of a plan are verified.

    Attributes
    ----------
    checked : kernels that were run against the reference now, those that were refused included.
    remembered : kernels that are known to agree from an earlier compilation on this machine.
    refused : kernels that were checked now and differ; the plan has others in their places.
    unchecked : kernels that could not be checked, each with its reason.
    seconds : what all of it took, without planning again.
    notes : what is to be said about the file of remembered kernels.
    """

    checked: int
    remembered: int
    refused: tuple[Refusal, ...] = ()
    unchecked: tuple[str, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> Verification | None:
        """Inverse of :meth:`to_json`."""
        if data is None:
            return None
        refused = tuple(Refusal(**one) for one in data["refused"])
        texts = {key: tuple(data[key]) for key in ("unchecked", "notes")}
        return cls(**{**data, **texts, "refused": refused})

    def __str__(self) -> str:
        counts = f"{self.checked} checked in {self.seconds:.2f} s, {self.remembered} remembered"
        lines = [f"kernels verified: {counts}, {len(self.refused)} refused"]
        lines += [f"  {refusal}" for refusal in self.refused]
        lines += [f"  not checked: {one}" for one in self.unchecked]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])
