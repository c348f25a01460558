"""``TunePlans``: whole plans compared before anything is decided; the best one's decisions are then taken.

Before   programs of regions, nothing decided
After    the same; the choices know what the best plan decides for each region

Each candidate decides algorithms and layouts for the whole module, is built to the end, and is valued: its
call is timed between those of the others, or its bytes are counted.  Candidates that decide the same are one.
Where records know the answer, nothing is built.
"""

from __future__ import annotations

import base64
import binascii
import gc
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import tvm
from tvm import relax

from ..byoc.backend import Backend
from ..core import codec
from ..core import program as ir
from ..core.choices import KINDS, Choices, Key
from ..core.dispatch import Weighed
from ..core.fingerprint import Fingerprint
from ..options import Options
from ..passes.region.attached import program_of, regions
from ..recorder import Recorder
from .candidates import Candidate, candidates_for
from .compare import Comparison
from .records import PlanResult, Record
from .values import UNITS, Port, fixed_ports, is_timed, memory_bytes, moved_bytes

if TYPE_CHECKING:
    from .tuning import Tuning

Passes = list[tvm.transform.Pass]


@dataclass(frozen=True)
class Stages:
    """The pipeline's own passes behind the programs of regions, for plans of one's own.

    Attributes
    ----------
    decide : passes that decide as a candidate does, noting it in choices and with a recorder.
    finish : passes from there to what is built, with a recorder of their own.
    """

    decide: Callable[[Candidate, Choices, Recorder], Passes]
    finish: Callable[[Recorder], Passes]


@dataclass(frozen=True)
class _Plan:
    """A candidate's decisions, and what was weighed for them."""

    name: str
    made: dict[Key, bytes]
    weighed: Weighed


@tvm.transform.module_pass(opt_level=0, name="TunePlans")
class TunePlans:
    """Module pass; see the module's text.

    Parameters
    ----------
    choices : is given the best plan's decisions.
    weighed : is given what was weighed for them.
    """

    def __init__(
        self,
        backend: Backend,
        options: Options,
        tuning: Tuning,
        choices: Choices,
        weighed: Weighed,
        stages: Stages,
    ) -> None:
        self.backend = backend
        self.options = options
        self.tuning = tuning
        self.choices = choices
        self.weighed = weighed
        self.stages = stages

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        programs = [program_of(function) for _, function in regions(mod, self.backend.name)]
        if not programs:
            return mod
        if self._is_replayed(mod):
            self.tuning.skipped("the choices were loaded")
            return mod
        digest = self._question(programs)
        known = self.tuning.meter.records.find("plan", digest)
        result = known.plan if known else None
        if result and self.tuning.measures and not result.complete:
            result = None
        decided = _decided(result) if result else None
        if result and decided:
            self.tuning.found(result)
            self.choices.advise(decided, self.tuning.origin_of(known))
        elif self.tuning.measures:
            ports = fixed_ports(mod["main"])
            if ports is None:
                self.tuning.skipped("whole plans are compared for fixed shapes of known types only")
            else:
                self._tune(mod, digest, ports)
        return mod

    def _is_replayed(self, mod: tvm.IRModule) -> bool:
        """Whether choices that were loaded decide every region, so that there is nothing to tune."""
        known = self.choices.again()
        if not known.has_known:
            return False
        as_given = Candidate(self.options.policy, self.options.rule, False, False)
        self._run(self.stages.decide(as_given, known, Recorder()), mod)
        return known.used == known.regions > 0

    def _tune(self, mod: tvm.IRModule, digest: str, ports: list[Port]) -> None:
        strategy = self.options.tune_for
        plans: dict[tuple[bytes, ...], list[str]] = {}
        comparison, built, complete = Comparison(), {}, True
        sampler = self.tuning.place.sampler(strategy, ports) if is_timed(strategy) else None
        for candidate in candidates_for(self.options, measures=self.tuning.times_steps):
            if not self.tuning.meter.left():
                self.tuning.skipped("the budget was spent before all plans were compared")
                complete = False
                break
            choices, noted = Choices(), Recorder()
            decided = self._run(self.stages.decide(candidate, choices, noted), mod)
            if choices.symbolic:
                self.tuning.skipped("whole plans are compared for fixed shapes only")
                return
            programs = tuple(codec.encode(program_of(f)) for _, f in regions(decided, self.backend.name))
            names = plans.setdefault(programs, [])
            names.append(candidate.name)
            if len(names) > 1:
                continue
            plan = built[candidate.name] = _Plan(candidate.name, choices.made, noted.weighed)
            with self.tuning.meter.spending(), self.tuning.place.only_measured():
                recorder = Recorder()
                finished = self._run(self.stages.finish(recorder), decided)
                if sampler is None:
                    self._count(comparison, plan, recorder)
                else:
                    with unseen():
                        module = relax.build(finished, self.tuning.target, relax_pipeline=None)
                    comparison.join(plan.name, sampler(module))
            self._tell(comparison, plan.name)
        with self.tuning.meter.spending():
            start, spent = time.perf_counter(), self.tuning.meter.spent
            left = self.tuning.meter.budget - spent
            comparison.settle(lambda: time.perf_counter() - start < left)
        gc.collect()
        if not built:
            return
        best, value = comparison.best
        made = built[best].made
        self.weighed.update(built[best].weighed)
        values = comparison.values
        rows = [(n, values[names[0]], names[0] != best) for names in plans.values() for n in names]
        table = [row[:2] for row in sorted(rows, key=lambda row: (row[2], row[1]))]
        decisions = tuple((f"{key.kind}/{key.digest}", _packed(made[key])) for key in made)
        result = PlanResult(tuple(table), complete, decisions)
        text = f"{len(built)} plans for {strategy}: {best}"
        record = Record("plan", digest, text, value, comparison.repeats, time.time(), result)
        self.tuning.meter.note(record)
        self.tuning.compared(result)
        self.choices.advise(made)

    def _count(self, comparison: Comparison, plan: _Plan, recorder: Recorder) -> None:
        report = recorder.report
        if self.options.tune_for == "memory":
            comparison.state(plan.name, memory_bytes(recorder.programs, report.memory, self.backend))
        else:
            comparison.state(plan.name, moved_bytes(recorder.programs, self.backend))

    def _tell(self, comparison: Comparison, name: str) -> None:
        unit = UNITS[self.options.tune_for]
        self.tuning.meter.tell("plans", name, comparison.values[name], unit, comparison.best)

    def _run(self, passes: Passes, mod: tvm.IRModule) -> tvm.IRModule:
        with unseen():
            return tvm.transform.Sequential(passes)(mod)

    def _question(self, programs: list[ir.Program]) -> str:
        options = self.options
        fingerprint = Fingerprint()
        fingerprint.add("programs", sorted(codec.encode(program) for program in programs))
        fingerprint.add("target", str(self.tuning.target))
        fingerprint.add("open", [options.policy, options.rule, options.tune_for])
        fingerprint.add("limits", [float(options.max_relative_error), options.memory, options.order])
        fingerprint.add("layers", dict(options.layers))
        fingerprint.add("versions", self.tuning.place.versions)  # other passes, other plans
        return fingerprint.hexdigest()


def unseen() -> tvm.transform.PassContext:
    """The caller's configuration without its instruments, which want to see one compilation."""
    outer = tvm.transform.PassContext.current()
    return tvm.transform.PassContext(
        opt_level=outer.opt_level,
        required_pass=list(outer.required_pass),
        disabled_pass=list(outer.disabled_pass),
        config=dict(outer.config.items()),
    )


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _decided(plan: PlanResult) -> dict[Key, bytes] | None:
    """The decided programs of a record; None where they cannot be read."""
    found = {}
    for name, text in plan.decided:
        kind, _, digest = name.partition("/")
        try:
            data = zlib.decompress(base64.b64decode(text))
            codec.decode(data)
        except (ValueError, binascii.Error, zlib.error):
            return None
        if kind not in KINDS:
            return None
        found[Key(kind, digest)] = data
    return found or None
