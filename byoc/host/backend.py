"""The host library as a backend: the tables of this folder behind the protocol that the passes know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.byoc import runtime_functions
from tvm_mxplan.byoc.backend import Refuse, Sharing, Translation
from tvm_mxplan.byoc.engine import Ask
from tvm_mxplan.byoc.runtime_functions import RUNTIME, RuntimeFunctions
from tvm_mxplan.byoc.translate import check_numbers, translate_region
from tvm_mxplan.core.description import Description, Implementation, StepInfo
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.machine.rates import MachineRates
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program.program import Program, Step
from tvm_mxplan.core.step_facts import StepFacts

from .checks import COMPUTED
from .codegen import TRANSLATE
from .costs import cost, implementation_named
from .layout_rules import RULES
from .layouts import layout_registry
from .patterns import NAME, fusion_patterns
from .taken_over import takes_over


class Host:
    """Plain C++ on OpenMP's threads; see :class:`tvm_mxplan.byoc.backend.Backend`."""

    library = "host"
    name = NAME
    takes_arena = True
    literal = ("relax.sum",)

    def __init__(self, runtime: RuntimeFunctions) -> None:
        self._runtime = runtime
        self._refused: dict[tuple[str, str], str] = {}

    @property
    def shares(self) -> Sharing:
        return Sharing(RUNTIME, False, TRANSLATE, judged=self.judged, takes_over=takes_over)

    def layout_rules(self, step: Step) -> LayoutRules:
        return RULES

    def layouts(self) -> LayoutRegistry:
        return layout_registry(self._runtime)

    def patterns(self, refuse: Refuse) -> list[relax.transform.FusionPattern]:
        return fusion_patterns(refuse)

    def translate(self, region: relax.Function, name: str, machine: MachineRates) -> Translation:
        program, constants = translate_region(region, name, NAME, TRANSLATE)
        check_numbers(program)
        return Translation(program, constants)

    def describe(self, program: Program) -> Description:
        return self._without_refused(self._runtime.describe(program, implementation_named))

    def _without_refused(self, found: Description) -> Description:
        """The description with an error where the implementation that the step has must not run."""
        return replace(found, steps=tuple(map(self.judged, found.steps))) if self._refused else found

    def judged(self, step: StepInfo) -> StepInfo:
        """The step with an error where what runs it has been refused."""
        reason = self._refused.get((step.descriptor, step.implementation), "")
        return replace(step, error=step.error or reason)

    def implementation(self, name: str) -> Implementation:
        return implementation_named(name)

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        return cost(facts, machine)

    def lacks(self, dtype: str) -> str:
        return "" if dtype in COMPUTED else f"the host library does not compute in {dtype}"

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        self._refused[descriptor, implementation] = reason

    def create_module(
        self, symbol: str, program: Program, constants: list[tvm.runtime.Tensor]
    ) -> tvm.runtime.Module:
        return self._runtime.create_module(symbol, program, constants)

    def trial(self, program: Program, constants: list[np.ndarray]) -> Callable[..., object]:
        return self._runtime.trial(program, constants)

    def modules_to_export(self, module: tvm.runtime.Module) -> list[tvm.runtime.Module]:
        return [module, runtime_functions.split_weights(module)]


class HostElsewhere(Host):
    """The same as it would answer at the other end of ``ask``."""

    def __init__(self, runtime: RuntimeFunctions, ask: Ask) -> None:
        super().__init__(runtime)
        self._ask = ask

    def describe(self, program: Program) -> Description:
        answer = self._ask("describe", codec.encode(program))
        return self._without_refused(runtime_functions.read_description(answer, implementation_named))
