"""``Journal``: what one compilation refused, tried, decided, weighed and proved.

Passes write to it, each through the method of its kind; the report and what explains it are views.  Functions
that decide return what they found, and the pass around them writes it down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..allocation import Plan
from ..layout.layout_decision import LayoutDecision
from .dispatch import DispatchDecision, Trial, Weighed
from .precision import PrecisionDecision


@dataclass
class Journal:
    """One compilation's records; a compilation that is tried beside it has one of its own.

    Attributes
    ----------
    refused : why operators were refused, by what Relax calls them, and by their own names where a region
        went back to TVM.
    failures : what TVM failed on, by the kernel or operator; other means were taken for it.
    trials : whole plans with other implementations for some kinds of operators, by kind.
    dispatched : who runs each operator, by its name.
    weighed : candidates of the steps of regions, by the steps' names.
    precisions : in which types the steps of regions compute, by the regions' names.
    layouts : how the layouts of regions were decided, by the regions' names.
    plans : memory plans with their bounds, by the regions' names.
    """

    refused: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    trials: dict[str, Trial] = field(default_factory=dict)
    dispatched: dict[str, DispatchDecision] = field(default_factory=dict)
    weighed: Weighed = field(default_factory=dict)
    precisions: dict[str, PrecisionDecision] = field(default_factory=dict)
    layouts: dict[str, LayoutDecision] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    _weighed_before: Weighed | None = None

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Note operators that were refused, or went back to TVM; the last reason stands."""
        self.refused |= reasons

    def fail(self, reasons: Mapping[str, str]) -> None:
        """Note what TVM failed on; the last reason stands."""
        self.failures |= reasons

    def dispatch(self, decision: DispatchDecision) -> None:
        """Note who runs an operator."""
        self.dispatched[decision.operator] = decision

    def weigh(self, found: Weighed) -> None:
        """Note candidates of steps, in the place of those that are noted."""
        self.weighed |= found

    def weigh_more(self, found: Weighed) -> None:
        """Note candidates of steps, behind those that are noted."""
        self.weighed |= {name: [*self.weighed.get(name, ()), *more] for name, more in found.items()}

    def assign_precision(self, region: str, decision: PrecisionDecision) -> None:
        """Note in which types the steps of a region compute."""
        self.precisions[region] = decision

    def lay_out(self, region: str, decision: LayoutDecision) -> None:
        """Note how the layouts of a region were decided."""
        self.layouts[region] = decision

    def place(self, region: str, plan: Plan) -> None:
        """Note the memory plan of a region."""
        self.plans[region] = plan

    def begin_turn(self) -> None:
        """Regions are decided anew: what was weighed in an earlier turn is forgotten."""
        if self._weighed_before is None:
            self._weighed_before = dict(self.weighed)
        self.weighed = dict(self._weighed_before)
