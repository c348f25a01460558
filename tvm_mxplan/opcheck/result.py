"""The findings of a check, as plain data that prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tvm_mxplan.errors import InternalError

Kind = Literal["values", "not finite", "tail", "alignment"]


@dataclass(frozen=True)
class Finding:
    """The error in one value: elements that differ, a tail that is not zero, an address.

    Attributes
    ----------
    count : elements at fault, of ``total``.
    index : logical index of the worst of them; empty where no element is meant.
    actual, expected, allowed : there; ``allowed`` is the absolute difference that rounding explains.
    """

    kind: Kind
    value: str
    count: int = 0
    total: int = 0
    index: tuple[int, ...] = ()
    actual: float = 0.0
    expected: float = 0.0
    allowed: float = 0.0
    address: int = 0

    def __str__(self) -> str:
        if self.kind == "alignment":
            return f"{self.value} stands at address {self.address:#x}, which is not aligned"
        if self.kind == "tail":
            return f"{self.count} elements in the padding of {self.value} are not zero"
        at = ", ".join(map(str, self.index))
        return (
            f"{self.count} of {self.total} elements of {self.value} differ; the worst, at [{at}], is "
            f"{self.actual:.9g}, expected {self.expected:.9g} within {self.allowed:.1e}"
        )


@dataclass(frozen=True)
class Difference:
    """A step that did not do what its program says.

    Attributes
    ----------
    step : its place in the region's program.
    layouts : of its operands, as ``role: layout``, in their order.
    replay : the file that replays it, "" where no folder was given.
    """

    region: str
    step: int
    name: str
    kind: str
    implementation: str
    layouts: tuple[str, ...]
    finding: Finding
    replay: str = ""

    def __str__(self) -> str:
        by = f" [{self.implementation}]" if self.implementation else ""
        where = f"region {self.region}: step {self.step}, {self.kind} {self.name}{by}"
        replay = f"; replay it with `tvmc replay {self.replay}`" if self.replay else ""
        return f"{where} on {{{', '.join(self.layouts)}}}: {self.finding}{replay}"


@dataclass(frozen=True)
class OpCheck:
    """The result of checking one call.

    Attributes
    ----------
    steps : how many steps were worked out a second time.
    differences : in the order in which they occurred; what follows a wrong step is judged by what it read.
    not_finite : names of steps that gave an infinity or no number, and rightly so.
    worst : the largest error of any element, as a share of what is allowed, and the step it is from.
    """

    steps: int
    differences: tuple[Difference, ...] = ()
    not_finite: tuple[str, ...] = ()
    worst: float = 0.0
    worst_step: str = ""

    @property
    def first(self) -> Difference | None:
        """The first step that differs, None if there is none."""
        return self.differences[0] if self.differences else None

    def raise_first(self) -> None:
        """Nothing where all steps agree; else InternalError with what ``str`` says."""
        if self.first is not None:
            raise InternalError(str(self))

    def __str__(self) -> str:
        if not self.steps:
            return "opcheck: nothing checked, no region ran"
        if self.first is None:
            text = f"opcheck: {self.steps} steps agree with their references in float64"
            if self.worst_step:
                text += f"; the nearest to its tolerance is {self.worst_step} at {100 * self.worst:.0f} %"
        else:
            names = len({(d.region, d.step) for d in self.differences})
            text = f"opcheck: {names} of {self.steps} steps differ from their references; first {self.first}"
        if self.not_finite:
            text += f"; not finite, as expected: {', '.join(self.not_finite)}"
        return text
