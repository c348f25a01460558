"""oneDNN as a backend: the tables of this folder behind the protocol that the passes know."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Refuse, Sharing, Translation
from tvm_mxplan.byoc.runtime_functions import RUNTIME
from tvm_mxplan.byoc.translate import check_numbers, translate_region
from tvm_mxplan.core.description import Description, Implementation
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program.program import Program, Step
from tvm_mxplan.core.step_facts import StepFacts

from . import library
from .codegen import TRANSLATE
from .costs import cost, implementation_named
from .element_types import missing_type
from .layout_rules import layout_rules
from .layouts import layout_registry
from .patterns import NAME, fusion_patterns
from .rewrites.fusion import fuse
from .rewrites.integer_products import IntegerProducts


class OneDNN:
    """oneDNN on the CPU; see :class:`tvm_mxplan.byoc.backend.Backend`."""

    @property
    def library(self) -> str:
        return "onednn"

    @property
    def name(self) -> str:
        return NAME

    @property
    def block(self) -> int:
        """Channels in one block of its blocked layouts."""
        return 16 if "avx512" in self.isa else 8

    @property
    def isa(self) -> str:
        """The instruction set that it generates code for."""
        return library.isa()

    def layout_rules(self, step: Step) -> LayoutRules:
        return layout_rules(self.block)

    def layouts(self) -> LayoutRegistry:
        return layout_registry(self.block)

    @property
    def takes_arena(self) -> bool:
        return True

    @property
    def literal(self) -> tuple[str, ...]:
        return ()

    @property
    def shares(self) -> Sharing:
        return Sharing(RUNTIME, True, TRANSLATE, self._fused)

    def patterns(self, refuse: Refuse) -> list[relax.transform.FusionPattern]:
        return fusion_patterns(refuse)

    def translate(self, region: relax.Function, name: str, machine: MachineRates) -> Translation:
        fused = self._fused(*translate_region(region, name, NAME, TRANSLATE), machine)
        check_numbers(fused.program)
        return fused

    def _fused(self, program: Program, constants: list[np.ndarray], machine: MachineRates) -> Translation:
        return fuse(program, constants, IntegerProducts.of(self.isa), machine.private_bytes)

    def describe(self, program: Program) -> Description:
        return library.describe(program)

    def lacks(self, dtype: str) -> str:
        return missing_type(dtype, self.isa)

    def implementation(self, name: str) -> Implementation:
        return implementation_named(name)

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        return cost(facts, machine)

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        library.refuse(descriptor, implementation, reason)

    def create_module(
        self, symbol: str, program: Program, constants: list[tvm.runtime.Tensor]
    ) -> tvm.runtime.Module:
        return library.create_module(symbol, program, constants)

    def trial(self, program: Program, constants: list[np.ndarray]) -> Callable[..., object]:
        return library.trial(program, constants)

    def modules_to_export(self, module: tvm.runtime.Module) -> list[tvm.runtime.Module]:
        return [module, library.split_weights(module)]
