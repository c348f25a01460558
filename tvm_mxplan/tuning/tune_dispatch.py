"""``TuneDispatch``: kinds of operators that TVM's own kernels may run faster, tried as whole plans.

Before   operators with names, nothing dispatched
After    the same; the trials know which kinds TVM is to have, and how the others did

The module is compiled as preferred and once more for each kind that TVM could have, as the option ``prefer``
would do it, with the model's costs; all are timed in turns.  Kinds that win are tried together as well, and
the best plan has to win clearly.  Where records know the answer, nothing is built.

Left out are convolutions and matrix products, parts of patterns that a library takes as one, and kinds whose
operators would cut a region in more than one place: on every network that was measured, such plans lost.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import tvm
from tvm import relax

from ..core.decisions.choices import Choices
from ..core.decisions.dispatch import DispatchDecision, Trial
from ..core.fingerprint import Fingerprint
from ..errors import RemoteError
from ..passes.annotations import TVM
from ..passes.region.attached import regions
from ..report.recorder import Recorder
from .compare import Comparison
from .records import PlanResult, Record
from .tune_plans import unseen
from .values import UNITS, Port, fixed_ports, is_timed

if TYPE_CHECKING:
    from ..phases import Compilation
    from .tuning import Tuning

AS_PREFERRED = "as preferred"
SHARE = 0.25
"""Of the budget, what these trials may use."""
CLEARLY = 0.98
MOST_CUTS = 1
"""The most regions by which a plan may exceed the one as preferred."""
_HEAVY = ("conv", "matmul")


@tvm.transform.module_pass(opt_level=0, name="TuneDispatch")
class TuneDispatch:
    """Module pass; see the module's text.

    Parameters
    ----------
    compilation : whose phases are run; where choices were loaded for it, nothing is measured.  Its choices
        are given what was decided, its journal what was tried.
    """

    def __init__(self, compilation: Compilation, tuning: Tuning) -> None:
        self.compilation = compilation
        self.tuning = tuning
        self.preference = compilation.preference
        self.options = compilation.options
        self.choices = compilation.choices

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        present = [one.name for one in self.preference.present]
        if not is_timed(self.options.tune_for) or present.index(TVM) == 0:
            return mod
        digest = self._question(mod)
        loaded = self.choices.find_dispatch(digest)
        known = self.tuning.meter.records.find("dispatch", digest)
        result = PlanResult.from_json(json.loads(loaded)) if loaded else known.plan if known else None
        if result is None or (self.tuning.measures and not result.complete and not loaded):
            may = self.tuning.measures and self.tuning.meter.left(SHARE) and not self.choices.has_known
            ports = fixed_ports(mod["main"]) if may else None
            if ports is None:
                return mod
            result = self._tune(mod, digest, ports)
        else:
            self.tuning.meter.known["dispatch"] += len(result.table) - 1
        self.choices.note_dispatch(digest, json.dumps(asdict(result)).encode())
        self.tuning.tried(result)
        self.compilation.recorder.journal.trials |= trials_of(result)
        return mod

    def _tune(self, mod: tvm.IRModule, digest: str, ports: list[Port]) -> PlanResult:
        comparison, meter, place = Comparison(), self.tuning.meter, self.tuning.place
        sampler = place.sampler(self.options.tune_for, ports)

        def join(name: str, dispatched: tvm.IRModule) -> None:
            with meter.spending(), unseen(), place.only_measured():
                lowered = self._lowered(dispatched)
                module = relax.build(lowered, self.tuning.target, relax_pipeline=None)
                comparison.join(name, sampler(module))

        def challenge(name: str, dispatched: tvm.IRModule) -> None:
            try:
                join(name, dispatched)
            except RemoteError:
                raise
            except Exception as error:  # a kernel that TVM cannot make is no candidate, whatever the reason
                reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
                self.tuning.skipped(f"{name} was not compared: {reason}")
                return
            unit = UNITS[self.options.tune_for]
            meter.tell("dispatch", name, comparison.values[name], unit, comparison.best)

        with meter.spending():
            preferred, candidates = self._candidates(mod)
        complete = True
        if candidates:
            join(AS_PREFERRED, preferred)
            for name, dispatched in candidates.items():
                complete = complete and meter.left(SHARE)
                if complete:
                    challenge(name, dispatched)
            winners = [name for name, ratio in ratios_of(comparison.values).items() if ratio < CLEARLY]
            if len(winners) > 1 and complete:
                challenge(",".join(sorted(winners)), self._dispatched(mod, winners, Recorder()))
            with meter.spending():
                start, left = time.perf_counter(), SHARE * meter.budget - meter.spent
                comparison.settle(lambda: time.perf_counter() - start < left)
            gc.collect()
        if not complete:
            self.tuning.skipped("the budget was spent before TVM's kernels were compared")
        result = result_of(comparison.values, complete)
        best, value = result.table[0]
        text = f"{len(result.table)} dispatches for {self.options.tune_for}: {best}"
        meter.note(Record("dispatch", digest, text, value, comparison.repeats, time.time(), result))
        return result

    def _candidates(self, mod: tvm.IRModule) -> tuple[tvm.IRModule, dict[str, tvm.IRModule]]:
        """The module dispatched as preferred, and with each kind in TVM that may gain, fewest cuts first."""
        recorder = Recorder()
        preferred = self._dispatched(mod, [], recorder)
        found: list[tuple[int, str, tvm.IRModule]] = []
        for kind in self._kinds(recorder.journal.dispatched.values()):
            name, other = f"{kind}={TVM}", Recorder()
            dispatched = self._dispatched(mod, [name], other)
            decided = other.journal.dispatched.values()
            moved = any(one.chosen.backend == TVM for one in decided if one.kind == kind)
            cuts = self._regions(dispatched) - self._regions(preferred)
            if moved and cuts <= MOST_CUTS:
                found.append((cuts, name, dispatched))
        found.sort(key=lambda row: row[0])
        return preferred, {name: dispatched for _, name, dispatched in found}

    def _kinds(self, decisions: Iterable[DispatchDecision]) -> list[str]:
        """Kinds of light operators that libraries have, each for itself, and nobody spoke of."""
        first = self.preference.first
        taken = [one for one in decisions if one.chosen.backend != TVM]
        closed = {one.kind for one in taken if one.is_fused or one.operator in first or one.kind in first}
        kinds = dict.fromkeys(one.kind for one in taken)
        return [kind for kind in kinds if kind not in closed and not kind.startswith(_HEAVY)]

    def _dispatched(self, mod: tvm.IRModule, given: list[str], recorder: Recorder) -> tvm.IRModule:
        first = {**self.preference.first, **_by_kind(",".join(given))}
        preference = replace(self.preference, first=first, trials={})
        with unseen():
            variant = self.compilation.but(preference=preference, recorder=recorder)
            return variant.run(mod, "dispatch", "partition")

    def _lowered(self, dispatched: tvm.IRModule) -> tvm.IRModule:
        """Lowers a module to what ``relax.build`` takes, decided by the model's costs."""
        by_model = self.compilation.but(recorder=Recorder(), choices=Choices(), tuning=None, verifier=None)
        return by_model.run(dispatched, "programs")

    def _regions(self, mod: tvm.IRModule) -> int:
        backends = [one.backend for one in self.preference.libraries if one.backend]
        return sum(len(list(regions(mod, backend.name))) for backend in backends)

    def _question(self, mod: tvm.IRModule) -> str:
        options, preference = self.options, self.preference
        fingerprint = Fingerprint()
        fingerprint.add("module", mod.script(show_meta=False))  # times do not depend on weights
        fingerprint.add("target", str(self.tuning.target))
        fingerprint.add("order", [one.name for one in preference.present])
        fingerprint.add("wishes", [dict(preference.first), dict(options.layers)])
        fingerprint.add("open", [options.policy, options.rule, options.tune_for])
        fingerprint.add("limits", [float(options.max_relative_error), options.memory, options.order])
        fingerprint.add("precision", [options.precision, dict(options.precision_for)])
        fingerprint.add("versions", self.tuning.place.versions)
        return fingerprint.hexdigest()


def ratios_of(values: Mapping[str, float]) -> dict[str, float]:
    """Values of plans beside that of the plan as preferred, by name."""
    return {name: value / values[AS_PREFERRED] for name, value in values.items() if name != AS_PREFERRED}


def result_of(values: Mapping[str, float], complete: bool) -> PlanResult:
    """The plan that is taken first, then the others by value; TVM's kernels have to win clearly."""
    if not values:
        return PlanResult(((AS_PREFERRED, 1.0),), complete, ())
    ratios = ratios_of(values)
    best = min(ratios, key=lambda name: ratios[name], default=AS_PREFERRED)
    if ratios.get(best, 1.0) >= CLEARLY:
        best = AS_PREFERRED
    rows = sorted(values.items(), key=lambda row: (row[0] != best, row[1]))
    return PlanResult(tuple(rows), complete, tuple(_by_kind(best).items()))


def trials_of(result: PlanResult) -> dict[str, Trial]:
    """Returns the trial of each kind: the plan that is taken, or the one with this kind alone."""
    found: dict[str, Trial] = {}
    taken = dict(result.decided)
    for name, ratio in ratios_of(dict(result.table)).items():
        given = _by_kind(name)
        trial = Trial(TVM, tuple(given), ratio, given == taken)
        for kind in given:
            if trial.taken or (len(given) == 1 and kind not in taken):
                found[kind] = trial
    return found


def _by_kind(name: str) -> dict[str, str]:
    """A plan's name, which is what the option ``prefer`` would say, as implementations by kind."""
    return dict(part.split("=") for part in name.split(",") if "=" in part)
