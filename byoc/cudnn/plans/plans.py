"""Execution plans of steps for one device: asked of cuDNN's planner once, and kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_mxplan.byoc.backend import EngineTimes
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .. import library
from ..device import Device
from ..graphs import graph_of
from .measured import MOST_CANDIDATES, RUNS, chosen, measure, title_of
from .record import EnginePlan, PlanRecord, engine_plan
from .store import STORE

_EXACT = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION")
"""Notes of engines that compute products of float32 with fewer digits than it has."""
_WITHOUT_PRODUCTS = ("pointwise", "resample", "reduction", "layer_norm", "batch_norm", "batch_norm_gradient")
"""Kinds of nodes that such engines compute with all digits: their notes say what they could do."""

_COMPILES = "RUNTIME_COMPILATION"
"""Behaviour of engines whose plans are compiled while they are made, which takes seconds."""


@dataclass(frozen=True)
class Rules:
    """The rules that say which engines may run.

    Attributes
    ----------
    tf32 : products of float32 may be computed with the 10 bits of TF32, as tensor cores do.
    deterministic : every run has to give the same bits.
    spares : which engines may stand by for one that fails where it runs: ``compiled`` for those whose plans
        take no compiler, ``any``, ``none``.
    replays : the steps of a region may be kept as one CUDA graph.
    """

    tf32: bool = False
    deterministic: bool = False
    spares: str = "compiled"
    replays: bool = False

    def notes(self, dtype: str, kinds: Collection[str]) -> list[str]:
        """Those of engines that may not run on ``dtype``, for a graph whose real nodes are of these kinds."""
        rounded = any(kind not in _WITHOUT_PRODUCTS for kind in kinds)
        exact = _EXACT if dtype == "float32" and rounded and not self.tf32 else ()
        return [*exact, *(["NONDETERMINISTIC"] if self.deterministic else [])]


class Plans:
    """The plans of one device; see the module's text.  Safe to use from many threads."""

    def __init__(self, device: Device, rules: Rules, times: EngineTimes | None = None) -> None:
        self.device = device
        self.rules = rules
        self._times = times
        self._settled: dict[str, dict[str, Any]] = {}
        self._refused: dict[str, set[str]] = {}
        self._answers: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def refuse(self, descriptor: str, engine: str) -> None:
        """Keep a step from an engine, from now on."""
        with self._lock:
            self._refused.setdefault(descriptor, set()).add(engine)
            self._settled.pop(descriptor, None)

    def descriptor(self, program: ir.Program, step: ir.Step) -> str:
        """The step's operation graph as text: equal for steps that compute the same in the same layouts."""
        return json.dumps(graph_of(program, step), sort_keys=True)

    def answer(self, descriptor: str, dtype: str) -> dict[str, Any]:
        """Returns the planner's answer for a graph: its engines and the plan, or an error."""
        with self._lock:
            settled = self._settled.get(descriptor)
        return self._asked(descriptor, dtype) if settled is None else settled

    def settle(self, descriptor: str, dtype: str) -> dict[str, Any]:
        """Likewise, of a graph that runs: by times of engines, where they are known or may be measured."""
        first = self.answer(descriptor, dtype)
        if self._times is None or descriptor in self._settled or "plan" not in first:
            return first
        found = self._fastest(self._times, descriptor, dtype) or first
        with self._lock:
            return self._settled.setdefault(descriptor, found)

    def candidates(self, descriptor: str, dtype: str) -> dict[str, Any]:
        """The answer with the plan of each of the first engines that build; see ``measured.chosen``."""
        return self._asked(descriptor, dtype, candidates=MOST_CANDIDATES)

    def _fastest(self, times: EngineTimes, descriptor: str, dtype: str) -> dict[str, Any] | None:
        """The answer with the engine that is known to be fastest, or measured now; None of neither."""
        question = json.dumps([json.loads(descriptor), self.rules.tf32, self.rules.deterministic])
        known = times.find(question)
        if known is not None:
            found = self._asked(descriptor, dtype, only=known)
            return found if "plan" in found else None
        if not times.may_measure():
            return None
        with times.spending():
            answer = self.candidates(descriptor, dtype)
            measured = measure(answer, self.record_of, json.loads(descriptor))
        if not measured:
            return None
        times.keep(question, title_of(json.loads(descriptor)), measured, RUNS)
        return chosen(answer, min(measured, key=lambda name: measured[name]))

    def spare(self, descriptor: str, dtype: str) -> dict[str, Any] | None:
        """Returns the answer with the next engine that may stand by, in no larger workspace; None without."""
        first = self.answer(descriptor, dtype)
        if self.rules.spares == "none" or "plan" not in first:
            return None
        barred = [_family(first["engines"][first["chosen"]]["name"])]
        behavior = [_COMPILES] if self.rules.spares == "compiled" else []
        found = self._asked(descriptor, dtype, barred, behavior, int(first["workspace"]))
        return found if "plan" in found else None

    def _asked(
        self,
        descriptor: str,
        dtype: str,
        barred: Sequence[str] = (),
        behavior: Sequence[str] = (),
        workspace: int = -1,
        candidates: int = 0,
        only: str = "",
    ) -> dict[str, Any]:
        """Asks without engines that were refused or are ``barred``, those that behave so, or take more.

        ``candidates`` wants plans of so many engines, ``only`` that of one.
        """
        with self._lock:
            refused = sorted({*self._refused.get(descriptor, ()), *barred})
            graph = json.loads(descriptor)
            request = {
                **graph,
                "device": self.device.properties,
                "sm": self.device.sm,
                "notes": self.rules.notes(dtype, _real_kinds(graph)),
                "behavior": list(behavior),
                "workspace_limit": workspace,
                "refused": refused,
                "all": False,
                **({"candidates": candidates} if candidates else {}),
                **({"only": only} if only else {}),
            }
            key = json.dumps(request, sort_keys=True)
            if key not in self._answers:
                found = STORE.find(key)
                if found is None:
                    found = library.plan(request)
                    STORE.keep(key, found)
                self._answers[key] = found
            return self._answers[key]

    def record(self, program: ir.Program, step: ir.Step) -> bytes:
        """The plans of a step, as the step carries them; UnsupportedError where there is none."""
        descriptor, dtype = self.descriptor(program, step), program.values[step.dst].dtype
        answer = self.settle(descriptor, dtype)
        if "plan" not in answer:
            raise UnsupportedError(f"{step.kind} {step.name}: {answer['error']}")
        spare = self.spare(descriptor, dtype)
        return self.record_of([engine_plan(one) for one in (answer, spare) if one is not None])

    def record_of(self, plans: Sequence[EnginePlan]) -> bytes:
        """The bytes of plans for the device, as a step carries them."""
        device = self.device
        record = PlanRecord(
            library.cudnn_version(),
            device.sm,
            device.multiprocessors,
            device.driver,
            plans,
            self.rules.replays,
        )
        return record.encode()


def _real_kinds(graph: Mapping[str, Any]) -> set[str]:
    """Kinds of nodes that compute with real numbers; sums of integers are exact in whatever engine."""
    return {node["kind"] for node in graph["nodes"] if node.get("compute") != "INT32"}


def _family(engine: str) -> str:
    """The beginning of an engine's name that all its settings share: ``eng4_`` of ``eng4_k1=2``."""
    number, knobs, _ = engine.partition("_")
    return number + knobs
