"""The decisions of a compilation, as plain data that prints, saves and loads."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..cache.outcome import CacheReport
from ..core.decisions.dispatch import Dispatch
from ..core.decisions.origin import Origin, told
from ..core.decisions.precision import PrecisionDecision
from ..core.decisions.recomputation import Recomputation
from ..core.decisions.stored_state import StoredState
from ..core.decisions.verification import Verification
from ..core.layout.layout_decision import LayoutDecision
from ..errors import InvalidInputError
from ..execution.caches import CacheCounts
from ..execution.determinism import Determinism
from ..tuning.report import TuningReport
from .kept_operators import Fallback, KeptOperator
from .memory_report import MemoryReport


@dataclass(frozen=True)
class StepReport:
    """One primitive: what runs it, on which layouts, with what fused into it.

    Attributes
    ----------
    is_reference : whether that is the library's slow fallback code.
    types : of its sources and its result, as precisions; empty where all are float32.
    """

    name: str
    kind: str
    implementation: str
    layouts: tuple[str, ...]
    post_ops: tuple[str, ...]
    shape: tuple[str, ...]
    is_reference: bool = False
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReorderReport:
    """One layout conversion at run time, and the two operators between which it stands.

    Attributes
    ----------
    producer, consumer : steps, or names of the region's inputs and outputs.
    nbytes : bytes read and written.
    cost_us : microseconds, as the cost model estimates them; -1 where shapes are symbolic.
    """

    producer: str
    consumer: str
    source_layout: str
    target_layout: str
    nbytes: int
    cost_us: float


@dataclass(frozen=True)
class RegionReport:
    """One region: its primitives, reorders and bytes.

    Attributes
    ----------
    arena_bytes : bytes of all values between steps and of scratchpads, -1 if planned at run time.
    constant_bytes : bytes of plain weights and parameters.
    multiply_adds : of one call.
    calls : how many calls of it the module has; equal regions are one.
    layouts : how its layouts were chosen, and what is proved about that.
    crossing : inputs and outputs that come and go in a physical layout, and that layout, as ``output0 acdb``.
    estimated_us : of one call, by the cost model; None in reports of earlier versions.
    precision : in which types its steps compute; None where everything is float32 and nothing else wanted.
    """

    name: str
    backend: str
    steps: tuple[StepReport, ...]
    arena_bytes: int
    constant_bytes: int
    multiply_adds: int
    reorders: tuple[ReorderReport, ...] = ()
    layouts: LayoutDecision | None = None
    crossing: tuple[str, ...] = ()
    calls: int = 1
    estimated_us: float | None = None
    precision: PrecisionDecision | None = None

    @property
    def reference_steps(self) -> tuple[StepReport, ...]:
        """Steps for which the library has nothing but its slow reference code."""
        return tuple(step for step in self.steps if step.is_reference)


@dataclass(frozen=True)
class Report:
    """The record of what ran where, and why the rest did not.

    Attributes
    ----------
    multiply_adds : of the whole module; what regions hold is in ``offloaded``.
    kept : each of the operators in ``fallbacks``.
    memory : of each region that is planned ahead of time, then of each function that has an arena.
    determinism : what the bits of results rest on; None unless the option asked for them.
    cache : whether all this was made now or read from the cache on disk.
    dispatch : for each operator its candidates, who won, and why the others were out.
    tuning : what was measured; None where nothing was to be.
    verification : how far the plan's kernels are verified; None where that is off.
    machine : by which rates times were estimated, and where these come from, in words.
    process_caches : what this compilation found in the process's caches of ``primitives`` and ``weights``.
    state : parameters that outlive a call and are stored in a layout of their own.
    converting : steps that convert such a parameter, or its gradient, in every call.
    failed_plans : plans of a GPU that failed in this process, and what ran in their places.
    tvm_failures : kernels and operators that TVM failed on, and on what; other means were taken for them.
    recomputation : what runs twice for a budget of memory; None where nothing does.
    """

    regions: tuple[RegionReport, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    multiply_adds: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    memory: tuple[MemoryReport, ...] = ()
    determinism: Determinism | None = None
    cache: CacheReport = field(default_factory=CacheReport)
    dispatch: Dispatch = field(default_factory=Dispatch)
    tuning: TuningReport | None = None
    verification: Verification | None = None
    process_caches: dict[str, CacheCounts] = field(default_factory=dict, compare=False)
    kept: tuple[KeptOperator, ...] = ()
    machine: str = ""
    state: tuple[StoredState, ...] = ()
    converting: tuple[str, ...] = ()
    failed_plans: tuple[str, ...] = ()
    recomputation: Recomputation | None = None
    tvm_failures: tuple[str, ...] = ()

    @property
    def offloaded(self) -> float:
        """Share of the multiply-adds that regions hold, 0 to 1; 1 where there are none."""
        if not self.multiply_adds:
            return 1.0
        return sum(region.calls * region.multiply_adds for region in self.regions) / self.multiply_adds

    @property
    def outside(self) -> float | None:
        """Share of the estimated time in operators that TVM keeps, 0 to 1; None where nothing was estimated.

        What has no estimate is left out.
        """
        inside = [region.estimated_us for region in self.regions]
        if None in inside:
            return None
        kept, whole = sum(one.estimated_us or 0.0 for one in self.kept), self.estimated_us
        return kept / whole if whole else None

    @property
    def estimated_us(self) -> float:
        """Microseconds of a call, as far as they are estimated."""
        regions = sum(region.calls * (region.estimated_us or 0.0) for region in self.regions)
        return regions + sum(one.estimated_us or 0.0 for one in self.kept)

    def share(self, operator: KeptOperator) -> float | None:
        """Share of the estimated time of one operator that TVM keeps; None where that is not known."""
        if operator.estimated_us is None or self.outside is None:
            return None
        kept = sum(one.estimated_us or 0.0 for one in self.kept)
        return self.outside * operator.estimated_us / kept if kept else 0.0

    def to_json(self) -> dict[str, Any]:
        data = asdict(replace(self, dispatch=Dispatch()))
        for region in data["regions"]:
            _leave_out(region, "precision")
            for step in region["steps"]:
                _leave_out(step, "types")
        _leave_out(data, "state")
        _leave_out(data, "converting")
        _leave_out(data, "failed_plans")
        _leave_out(data, "tvm_failures")
        _leave_out(data, "recomputation")
        return {**data, "dispatch": self.dispatch.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        """Inverse of :meth:`to_json`."""
        regions = []
        for region in data["regions"]:
            steps = tuple(_step_from_json(step) for step in region["steps"])
            reorders = tuple(ReorderReport(**reorder) for reorder in region["reorders"])
            changed = {
                "steps": steps,
                "reorders": reorders,
                "layouts": _decision_from_json(region.get("layouts")),
                "crossing": tuple(region.get("crossing", ())),
                "precision": PrecisionDecision(**region["precision"]) if region.get("precision") else None,
            }
            regions.append(RegionReport(**{**region, **changed}))
        fallbacks = tuple(Fallback(**fallback) for fallback in data["fallbacks"])
        kept = tuple(
            KeptOperator(**{**one, "origins": tuple(Origin(**origin) for origin in one["origins"])})
            for one in data.get("kept", ())
        )
        memory = tuple(MemoryReport.from_json(region) for region in data.get("memory", ()))
        determinism = Determinism.from_json(data.get("determinism"))
        cache = CacheReport(**data.get("cache", {}))
        counts = {name: CacheCounts(**row) for name, row in data.get("process_caches", {}).items()}
        return cls(
            regions=tuple(regions),
            fallbacks=fallbacks,
            multiply_adds=data["multiply_adds"],
            seconds=data["seconds"],
            memory=memory,
            determinism=determinism,
            cache=cache,
            dispatch=Dispatch.from_json(data["dispatch"]) if "dispatch" in data else Dispatch(),
            tuning=TuningReport.from_json(data.get("tuning")),
            verification=Verification.from_json(data.get("verification")),
            process_caches=counts,
            kept=kept,
            machine=data.get("machine", ""),
            state=tuple(StoredState.from_json(one) for one in data.get("state", ())),
            converting=tuple(data.get("converting", ())),
            failed_plans=tuple(data.get("failed_plans", ())),
            tvm_failures=tuple(data.get("tvm_failures", ())),
            recomputation=Recomputation.from_json(data.get("recomputation")),
        )

    def explain(self, operator: str = "") -> str:
        """The decisions on all operators, or on one.

        Parameters
        ----------
        operator : its name, or that of what it comes from in the model.

        Raises
        ------
        InvalidInputError : the model has no operator of this name.
        """
        try:
            about = self.dispatch.about(operator) if operator else []
            text = "\n".join(map(str, about)) if operator else str(self.dispatch)
        except KeyError as error:
            raise InvalidInputError(error.args[0]) from None
        if self.verification is None:
            return text
        names = {decision.operator for decision in about}
        refused = [str(one) for one in self.verification.refused if one.step in names]
        return "\n".join([text, *(refused if operator else [str(self.verification)])])

    def __str__(self) -> str:
        share = f"{100 * self.offloaded:.1f} % of {self.multiply_adds / 1e6:,.1f} M multiply-adds offloaded"
        lines = [share if self.multiply_adds else "no convolutions or matrix products"]
        if self.outside is not None:
            lines.append(
                f"estimated time: {_percent(1 - self.outside)} in regions, "
                f"{_percent(self.outside)} in what is left to TVM"
            )
        if self.machine:
            lines.append(f"machine, {self.machine}")
        for region in self.regions:
            lines.append("")
            lines += _region_lines(region)
            for memory in self.memory:
                if memory.region == region.name:
                    lines += [f"  {line}" for line in str(memory).splitlines()]
        for memory in self.memory:
            if memory.region not in {region.name for region in self.regions}:
                lines += [
                    "",
                    f"function {memory.region}",
                    *(f"  {line}" for line in str(memory).splitlines()),
                ]
        lines += self._state_lines()
        if self.recomputation:
            lines += ["", str(self.recomputation)]
        lines.append("")
        if self.fallbacks:
            lines.append("left to TVM:")
            lines += [line for fallback in self.fallbacks for line in self._kept_lines(fallback)]
        else:
            lines.append("left to TVM: nothing")
        lines += [f"plan that failed here, {failed}" for failed in self.failed_plans]
        lines += [f"TVM fails on {failure}" for failure in self.tvm_failures]
        if self.determinism:
            lines.append(str(self.determinism))
        if self.tuning:
            lines.append(str(self.tuning))
        if self.verification:
            lines.append(str(self.verification))
        if self.seconds:
            spent = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())
            lines.append(f"compile time: {spent}")
        lines += [f"{name} in this process: {counts}" for name, counts in self.process_caches.items()]
        if self.cache.outcome != "off":
            lines.append(str(self.cache))
        return "\n".join(lines)

    def _state_lines(self) -> list[str]:
        """Lists in which layouts parameters are stored, and the steps that convert them."""
        if not self.state and not self.converting:
            return []
        layouts = Counter(one.layout for one in self.state).most_common()
        stored = ", ".join(f"{count} x {layout}" for layout, count in layouts) or "plain"
        converting = ", ".join(self.converting) or "none"
        return ["", f"state stored as {stored}", f"  converted inside of steps: {converting}"]

    def _kept_lines(self, fallback: Fallback) -> list[str]:
        """Lists the operators of one kind that are left to TVM, those that take longest first."""
        lines = [f"  {fallback.count:4d} x {fallback.operator}: {fallback.reason}"]
        kept = [one for one in self.kept if one.kind == fallback.operator]
        kept.sort(key=lambda one: -(one.estimated_us or 0.0))
        for one in kept[:_MOST_KEPT]:
            share = self.share(one)
            facts = [
                "" if share is None else f"{_percent(share)} of the time",
                f"from {told(one.origins)}" if one.origins else "",
                one.reason if one.reason != fallback.reason else "",
            ]
            said = ", ".join(filter(None, facts))
            lines.append(f"         {one.operator}{': ' if said else ''}{said}")
        more = len(kept) - _MOST_KEPT
        return lines + ([f"         and {more} more"] if more > 0 else [])


_MOST_KEPT = 5
"""Operators of a kind that the report's text names; ``kept`` has all of them."""


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _leave_out(data: dict[str, Any], name: str) -> None:
    """Drop a field that says nothing."""
    if not data[name]:
        del data[name]


def _step_from_json(data: dict[str, Any]) -> StepReport:
    lists = {key: tuple(data[key]) for key in ("layouts", "post_ops", "shape")}
    return StepReport(
        data["name"],
        data["kind"],
        data["implementation"],
        **lists,
        types=tuple(data.get("types", ())),
        is_reference=data.get("is_reference", False),
    )


def _decision_from_json(data: dict[str, Any] | None) -> LayoutDecision | None:
    return LayoutDecision(**{**data, "forced": tuple(data["forced"])}) if data else None


def _region_lines(region: RegionReport) -> list[str]:
    kinds = Counter(step.kind for step in region.steps)
    summary = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    arena = "planned at run time" if region.arena_bytes < 0 else f"{region.arena_bytes:,} bytes"
    calls = f", called {region.calls} times" if region.calls != 1 else ""
    lines = [
        f"region {region.name} on {region.backend}: {len(region.steps)} primitives ({summary}){calls}",
        f"  arena {arena}, constants {region.constant_bytes:,} bytes",
    ]
    if region.layouts:
        lines.append(f"  {region.layouts}")
    if region.precision:
        lines.append(f"  {region.precision}")
    width = max((len(step.name) for step in region.steps), default=0)
    for step in region.steps:
        fused = f"  + {', '.join(step.post_ops)}" if step.post_ops else ""
        layouts = " -> ".join(dict.fromkeys(step.layouts))
        shape = "x".join(step.shape)
        runs = step.implementation or "in place"
        types = f" {' -> '.join(dict.fromkeys(step.types))}" if step.types else ""
        lines.append(f"  {step.name:{width}}  {runs:26} {layouts:14} {shape}{types}{fused}")
    for reorder in region.reorders:
        lines.append(
            f"  reorder {reorder.source_layout} -> {reorder.target_layout} between {reorder.producer} and "
            f"{reorder.consumer}: {reorder.nbytes:,} bytes, about {reorder.cost_us:.0f} us"
        )
    if region.crossing:
        lines.append(f"  crossing without a reorder: {', '.join(region.crossing)}")
    for step in region.reference_steps:
        lines.append(f"  slow: {step.name} has reference code only")
    return lines
