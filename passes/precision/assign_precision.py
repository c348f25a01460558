"""``AssignPrecision``: in which element types the steps of every region compute, and where casts stand.

Before   programs in float32, plain layouts
After    steps that read bfloat16 where that is wanted and costs less; filters in it; casts where types meet

With ``auto`` errors of roundings are bounded over the whole module (``decide_types``), and what they may add
stands on the regions, for the algorithms that share the bound.

The region's body stays in float32: it says what the program computes, not how exactly.  What a region takes
and returns keeps its type.  The decision is made in ``choose_types``, symbolic shapes at typical numbers; a
library that does not compute in the type on this machine keeps everything in float32, with the reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.decisions.precision import ELEMENT_TYPES, HALF, PrecisionDecision
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import InvalidInputError

from ..costs.model import cost_or_model
from ..costs.source import CostSource
from ..origins import origin_table
from ..region.attached import (
    attach,
    carries_program,
    constants_of,
    fused_of,
    program_of,
    regions,
    rounding_in,
    with_rounding,
)
from .apply_types import apply_types
from .balanced_rounding import sums_of
from .choose_types import TypeChoice
from .constants import Constants
from .decide_types import OpenRegion, TypeDecider
from .step_types import FLOAT
from .wishes import Names, PrecisionWish

_SHORT = ELEMENT_TYPES["bf16"]
_HALF, _INTEGERS = "float16", "int8"


@tvm.transform.module_pass(opt_level=0, name="AssignPrecision")
class AssignPrecision:
    """Module pass; see the module's text.

    Parameters
    ----------
    backend : whose regions to decide on.
    wish : what is wanted.
    cost : what steps cost in given layouts and types; None for the library's model.
    journal : is told what was decided.
    """

    def __init__(
        self,
        backend: Backend,
        wish: PrecisionWish,
        cost: CostSource | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.backend = backend
        self.wish = wish
        self.cost = cost_or_model(cost, backend)
        self.journal = Journal() if journal is None else journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        stated = {
            name
            for name, origins in origin_table(mod).items()
            if any(origin.computes == _SHORT for origin in origins)
        }
        if self.wish.is_float(stated):
            self._tell(mod, self.backend.lacks(_HALF) if self.wish.precision == HALF else "")
            return mod
        self._check_names(mod)
        why_not = self.backend.lacks(_SHORT)
        if why_not:
            self._tell(mod, why_not)
            return mod
        mod = mod.clone()
        own = list(regions(mod, self.backend.name))
        decider = TypeDecider(self.backend, self.wish, _SHORT, self.cost, rounding_in(mod))
        open_regions = [_open(function, stated) for _, function in own]
        for (gvar, function), region, decided in zip(
            own, open_regions, decider.decide(open_regions), strict=True
        ):
            typed, decision = self._applied(function, region, *decided)
            mod.update_func(gvar, typed)
            self.journal.assign_precision(region.whole.name, decision)
        return mod

    def _tell(self, mod: tvm.IRModule, why_not: str) -> None:
        """Note why regions compute in float32 alone: without the shorter type, or without integers."""
        integers = self.backend.lacks(_INTEGERS)
        if not why_not and not integers:
            return
        for _, function in regions(mod, self.backend.name):
            program = program_of(function)
            told = integers if _is_real_but_quantised(program) else ""
            if why_not or told:
                decision = PrecisionDecision(self.wish.precision, why_not=why_not, integers_why_not=told)
                self.journal.assign_precision(program.name, decision)

    def _applied(
        self, function: relax.Function, region: OpenRegion, program: ir.Program, choice: TypeChoice
    ) -> tuple[relax.Function, PrecisionDecision]:
        constants = constants_of(function)
        typed = apply_types(program, choice.types)
        sums = sums_of(program)
        stored = [region.constants.stored(one, constants, sums.get(one[0])) for one in typed.constants]
        function = attach(function, typed.program, stored)
        max_error = -1.0
        if self.wish.is_bounded:
            function = with_rounding(function, choice.spent)
            max_error = self.wish.max_relative_error
        counts = Counter(types.read for types in choice.types)
        decision = PrecisionDecision(
            self.wish.precision,
            {dtype: counts[dtype] for dtype in (_SHORT, FLOAT) if counts[dtype]},
            typed.casts,
            round(choice.cost_us, 2),
            round(choice.float32_us, 2),
            math.sqrt(choice.spent),
            max_error,
            choice.kept,
        )
        return function, decision

    def _check_names(self, mod: tvm.IRModule) -> None:
        """InvalidInputError where an operator that no library runs is to compute in another type."""
        carrying = [f for f in mod.functions.values() if carries_program(f)]
        steps = {step.name.partition(".")[0] for f in carrying for step in program_of(f).steps}
        steps |= {name for f in carrying for name in fused_of(f)}
        for name, precision in self.wish.operators.items():
            if precision != "f32" and name.rpartition("_")[2].isdecimal() and name not in steps:
                raise InvalidInputError(
                    f"option precision_for: {name}={precision}, but {name} is in no library's region: "
                    "TVM computes it in f32; the report says why"
                )


def _is_real_but_quantised(program: ir.Program) -> bool:
    """Whether a program has conversions into integers, and products that do not take these."""
    products = [step for step in program.steps if isinstance(step.attrs, ir.PRODUCTS)]
    converts = any(isinstance(step.attrs, ir.Quantization) for step in program.steps)
    return converts and any(not step.is_quantized for step in products)


def _open(function: relax.Function, stated: Collection[str]) -> OpenRegion:
    inside: dict[str, list[str]] = {}
    for name, into in fused_of(function).items():
        inside.setdefault(into, []).append(name)
    arrays = [np.from_dlpack(constant) for constant in constants_of(function)]
    return OpenRegion(program_of(function), Names(inside, stated), Constants(arrays, _SHORT))
