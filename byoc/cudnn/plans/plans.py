"""Execution plans of steps for one device: asked of cuDNN's planner once, and kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError

from .. import library
from ..device import Device
from ..graphs import graph_of
from .record import PlanRecord
from .store import STORE

_EXACT = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION")
"""Notes of engines that compute products of float32 with fewer digits than it has."""
_WITHOUT_PRODUCTS = ("pointwise", "resample", "reduction", "layer_norm")
"""Kinds of nodes that such engines compute with all digits: their notes say what they could do."""


@dataclass(frozen=True)
class Rules:
    """The rules that say which engines may run.

    Attributes
    ----------
    tf32 : products of float32 may be computed with the 10 bits of TF32, as tensor cores do.
    deterministic : every run has to give the same bits.
    """

    tf32: bool = False
    deterministic: bool = False

    def notes(self, dtype: str, kinds: Collection[str]) -> list[str]:
        """Those of engines that may not run on ``dtype``, for a graph with nodes of these kinds."""
        rounded = any(kind not in _WITHOUT_PRODUCTS for kind in kinds)
        exact = _EXACT if dtype == "float32" and rounded and not self.tf32 else ()
        return [*exact, *(["NONDETERMINISTIC"] if self.deterministic else [])]


class Plans:
    """The plans of one device; see the module's text.  Safe to use from many threads."""

    def __init__(self, device: Device, rules: Rules) -> None:
        self.device = device
        self.rules = rules
        self._refused: dict[str, set[str]] = {}
        self._answers: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def refuse(self, descriptor: str, engine: str) -> None:
        """Keep a step from an engine, from now on."""
        with self._lock:
            self._refused.setdefault(descriptor, set()).add(engine)

    def descriptor(self, program: ir.Program, step: ir.Step) -> str:
        """The step's operation graph as text: equal for steps that compute the same in the same layouts."""
        return json.dumps(graph_of(program, step), sort_keys=True)

    def answer(self, descriptor: str, dtype: str) -> dict[str, Any]:
        """Returns the planner's answer for a graph: its engines and the plan, or an error."""
        with self._lock:
            refused = sorted(self._refused.get(descriptor, ()))
            graph = json.loads(descriptor)
            request = {
                **graph,
                "device": self.device.properties,
                "sm": self.device.sm,
                "notes": self.rules.notes(dtype, {node["kind"] for node in graph["nodes"]}),
                "workspace_limit": -1,
                "refused": refused,
                "all": False,
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
        """The plan of a step, as the step carries it; UnsupportedError where there is none."""
        answer = self.answer(self.descriptor(program, step), program.values[step.dst].dtype)
        if "plan" not in answer:
            raise UnsupportedError(f"{step.kind} {step.name}: {answer['error']}")
        engine = answer["engines"][answer["chosen"]]
        scalars = {one["uid"]: bytes.fromhex(one["bytes"]) for one in answer["scalars"]}
        return PlanRecord(
            library.cudnn_version(),
            self.device.sm,
            self.device.multiprocessors,
            self.device.driver,
            answer["workspace"],
            engine["name"],
            [uid for uid in answer["uids"] if uid not in scalars],
            sorted(scalars.items()),
            answer["plan"],
        ).encode()
