"""The decision about a region's layouts, the time it took, and what is proved about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LayoutDecision:
    """One region's choice of layouts.

    Attributes
    ----------
    policy : the option ``layouts`` that it was made under.
    seconds : spent on questions to the library, the choice and the rewriting.
    cost_us : estimate for the region, reorders included; -1 where the policy weighs no costs.
    lower_bound_us : no choice among the candidates has a smaller estimate.
    forced : steps whose layout an option gave.
    replayed : whether the choice was loaded, and its costs are those of who made it.
    """

    policy: str
    seconds: float
    cost_us: float = -1.0
    lower_bound_us: float = -1.0
    forced: tuple[str, ...] = ()
    replayed: bool = False

    @property
    def gap(self) -> float:
        """Bounds the estimate's excess over the least possible one, as a share of it; 0 is proved optimal."""
        gap = (self.cost_us - self.lower_bound_us) / max(self.cost_us, 1e-9)
        return gap if gap > 1e-6 else 0.0

    def __str__(self) -> str:
        forced = f", forced for {', '.join(self.forced)}" if self.forced else ""
        replayed = " replayed" if self.replayed else ""
        text = f"layouts by policy {self.policy}{replayed} in {self.seconds:.2f} s{forced}"
        if self.cost_us < 0:
            return text
        proof = f"at most {100 * self.gap:.2g} % above the optimum" if self.gap else "proved optimal"
        return f"{text}: about {self.cost_us:,.0f} us, {proof}"
