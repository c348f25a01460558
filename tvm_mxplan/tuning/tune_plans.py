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
from dataclasses import dataclass
from typing import TYPE_CHECKING

import tvm
from tvm import relax

from ..core.decisions.choices import KINDS, Choices, Key
from ..core.decisions.dispatch import Weighed
from ..core.fingerprint import Fingerprint
from ..core.program import codec
from ..core.program import program as ir
from ..passes.region.attached import program_of, regions
from ..report.recorder import Recorder
from .candidates import PlanCandidate, candidates_for
from .compare import Comparison
from .records import PlanResult, Record
from .values import UNITS, Port, fixed_ports, is_timed, memory_bytes, moved_bytes

if TYPE_CHECKING:
    from ..phases import Compilation
    from .tuning import Tuning


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
    compilation : whose phases are run; its choices are given the best plan's decisions, its recorder what
        was weighed for them.
    """

    def __init__(self, compilation: Compilation, tuning: Tuning) -> None:
        self.compilation = compilation
        self.tuning = tuning
        self.options = compilation.options
        self.choices = compilation.choices

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        programs = self._programs(mod)
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
        if known and result and decided:
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
        as_given = PlanCandidate(self.options.policy, self.options.rule, False, False)
        self._decided(mod, as_given, known, Recorder())
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
            decided = self._decided(mod, candidate, choices, noted)
            if choices.symbolic:
                self.tuning.skipped("whole plans are compared for fixed shapes only")
                return
            programs = tuple(codec.encode(program) for program in self._programs(decided))
            names = plans.setdefault(programs, [])
            names.append(candidate.name)
            if len(names) > 1:
                continue
            plan = built[candidate.name] = _Plan(candidate.name, choices.made, noted.journal.weighed)
            with self.tuning.meter.spending(), self.tuning.place.only_measured():
                recorder = Recorder()
                finished = self._finished(decided, recorder)
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
        self.compilation.recorder.journal.weigh(built[best].weighed)
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
        backends = self.compilation.backends
        programs = [(backend, recorder.programs_of(backend.library)) for backend in backends]
        if self.options.tune_for == "memory":
            comparison.state(plan.name, memory_bytes(recorder.report.memory, programs))
        else:
            comparison.state(plan.name, sum(moved_bytes(own, backend) for backend, own in programs))

    def _tell(self, comparison: Comparison, name: str) -> None:
        unit = UNITS[self.options.tune_for]
        self.tuning.meter.tell("plans", name, comparison.values[name], unit, comparison.best)

    def _programs(self, mod: tvm.IRModule) -> list[ir.Program]:
        """Those of all libraries."""
        backends = self.compilation.backends
        return [program_of(region) for backend in backends for _, region in regions(mod, backend.name)]

    def _decided(
        self, mod: tvm.IRModule, way: PlanCandidate, choices: Choices, recorder: Recorder
    ) -> tvm.IRModule:
        """The module with algorithms and layouts, decided as ``way`` says."""
        deciding = self.compilation.but(way=way, choices=choices, recorder=recorder, verifier=None)
        with unseen():
            return deciding.run(mod, "algorithms", "layouts")

    def _finished(self, decided: tvm.IRModule, recorder: Recorder) -> tvm.IRModule:
        """Finishes a module to what ``relax.build`` takes."""
        with unseen():
            return self.compilation.but(recorder=recorder, verifier=None).run(decided, "borders")

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
