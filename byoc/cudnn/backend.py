"""cuDNN as a backend: the tables of this folder behind the protocol that the passes know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import DeviceChoice, OnDevice, Refuse, Translation
from tvm_mxplan.byoc.translate import Table, check_numbers, translate_region
from tvm_mxplan.core.description import Description, Implementation, StepInfo, ValueInfo
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

from . import functions, layout_rules, library
from .codegen import table
from .costs import cost
from .device import Device, read_device
from .patterns import NAME, fusion_patterns
from .plans.plans import Plans, Rules
from .probe import program_of
from .rates import rates_of
from .rewrites.fusion import fuse

_NAIVE = "eng0"
"""The engine of convolutions that adds products one by one, ten times as long as others (seen on an H200)."""


class Cudnn:
    """cuDNN on a GPU; see :class:`tvm_mxplan.byoc.backend.DeviceBackend`."""

    library = "cudnn"
    name = NAME
    takes_arena = True
    literal = ()
    shares = None

    def __init__(self, plans: Plans | None = None) -> None:
        self._plans = plans

    def for_device(self, choice: DeviceChoice) -> OnDevice:
        reason = library.why_not()
        if reason:
            raise UnsupportedError(f"target cudnn: {reason}")
        if choice.properties is None:
            raise UnsupportedError(
                "target cudnn: plans are made for a device; name a file of its properties "
                "(device_properties), which tvmc device-properties writes on the machine with the GPU"
            )
        device = read_device(choice.properties)
        if choice.arch and choice.arch != device.arch:
            raise InvalidInputError(
                f"target cuda -arch={choice.arch}: {choice.properties} is of {device}, expected {device.arch}"
            )
        rules = Rules(choice.tf32, choice.deterministic, choice.spares, choice.replays)
        times = choice.engines(_facts(device)) if choice.engines is not None else None
        plans = Plans(device, rules, times)
        return OnDevice(Cudnn(plans), device.arch, str(device), rates_of(device))

    @property
    def plans(self) -> Plans:
        if self._plans is None:
            raise UnsupportedError("cuDNN: no device is known to make plans for; compile for a target")
        return self._plans

    @cached_property
    def _table(self) -> Table:
        return table(exact=not self.plans.rules.tf32)

    def layout_rules(self, step: ir.Step) -> LayoutRules:
        return layout_rules.RULES

    def layouts(self) -> LayoutRegistry:
        return LayoutRegistry()

    def patterns(self, refuse: Refuse) -> list[relax.transform.FusionPattern]:
        return fusion_patterns(refuse, self._probe)

    def _probe(self, context: relax.transform.PatternCheckContext, row: str) -> str | None:
        """Asks for engines of all that a match becomes."""
        try:
            program = program_of(context, row, self._table)
        except UnsupportedError as error:
            return str(error)
        asked = [step for step in program.steps if not _is_of_constants(program, step)]
        errors = (self._alone(program, step).error for step in asked)
        return next((error.partition(": ")[2] for error in errors if error), None)

    def _alone(self, program: ir.Program, step: ir.Step) -> StepInfo:
        found = [self.describe(one).steps[0] for one in layout_rules.forms(program, step)]
        return next((info for info in found if not info.error), found[0])

    def translate(self, region: relax.Function, name: str, machine: MachineRates) -> Translation:
        program, constants = translate_region(region, name, NAME, self._table)
        check_numbers(program)
        return fuse(program, constants, self._fuses)

    def _fuses(self, program: ir.Program) -> bool:
        """Whether a step may have the post-ops it has: an engine, and none that is slower than two steps."""
        (step,), (info,) = program.steps, self.describe(program).steps
        slower = (
            isinstance(step.attrs, ir.Convolution)
            and step.post_ops
            and step.attrs.groups < program.values[step.operand("src")].shape[1]  # type: ignore[operator]
            and info.implementation.partition("_")[0] == _NAIVE
        )
        return not info.error and not slower

    def describe(self, program: ir.Program) -> Description:
        values = [_settled(value) for value in program.values]
        known = replace(program, values=tuple(values))
        runs = _is_whole(known)
        steps = tuple(self._step(known, step, runs) for step in program.steps)
        infos = tuple(ValueInfo(value.layout, layout_rules.nbytes(value)) for value in values)
        return Description(steps, infos)

    def _step(self, program: ir.Program, step: ir.Step, runs: bool) -> StepInfo:
        """``runs``: it is a step of a region, and not asked for to see whether there is an engine."""
        function = functions.info(program, step)
        if function is not None:
            return function
        try:
            descriptor = self.plans.descriptor(program, step)
        except UnsupportedError as error:
            return StepInfo("", 0, 0, f"{step.kind} {step.name}: {error}")
        ask = self.plans.settle if runs else self.plans.answer
        answer = ask(descriptor, program.values[step.dst].dtype)
        if "plan" not in answer:
            return StepInfo("", 0, 0, f"{step.kind} {step.name}: {answer['error']}", descriptor=descriptor)
        engine = answer["engines"][answer["chosen"]]
        weights = sum(
            layout_rules.nbytes(program.values[one.value]) for one in step.operands if one.role == "weights"
        )
        return StepInfo(engine["name"], engine["workspace"], weights, "", descriptor=descriptor)

    def lacks(self, dtype: str) -> str:
        return f"cuDNN's regions compute in the types that the model states, {dtype} is not chosen for them"

    def implementation(self, name: str) -> Implementation:
        return Implementation(name, name.partition("_")[0])

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        del machine  # the CPU's; costs are those of the GPU that plans are made for
        return cost(facts, self._gpu, self.plans.rules.tf32)

    @cached_property
    def _gpu(self) -> MachineRates:
        return rates_of(self.plans.device).machine

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        del reason  # plans have one, the report tells it
        self.plans.refuse(descriptor, implementation)

    def create_module(
        self, symbol: str, program: ir.Program, constants: list[tvm.runtime.Tensor]
    ) -> tvm.runtime.Module:
        steps = tuple(
            step
            if functions.info(program, step) is not None
            else replace(step, prepared=self.plans.record(program, step))
            for step in program.steps
        )
        return library.create_module(symbol, replace(program, steps=steps), constants)

    def trial(self, program: ir.Program, constants: list[np.ndarray]) -> Callable[..., object]:
        raise UnsupportedError("plans of a GPU are not run while they are made")

    def modules_to_export(self, module: tvm.runtime.Module) -> list[tvm.runtime.Module]:
        return [module, module["mxplan.split_weights"]()]


def _facts(device: Device) -> dict[str, Any]:
    """The properties of a device and its libraries that times of engines are good for."""
    return {"GPU": device.text, **{name: version for name, version in library.versions().items() if version}}


def _is_whole(program: ir.Program) -> bool:
    """Whether a program writes all that its steps read, and results: a region, no step out of one."""
    written = {program.root(value) for step in program.steps for value in step.results}
    known = written | {at for at, value in enumerate(program.values) if value.kind in ("input", "constant")}
    reads = {program.root(value) for step in program.steps for value in step.reads()}
    outputs = {at for at, value in enumerate(program.values) if value.kind == "output"}
    return bool(outputs) and outputs <= written and reads <= known


def _is_of_constants(program: ir.Program, step: ir.Step) -> bool:
    """Whether all that a step reads is constant: it becomes a constant, and never runs."""
    return all(program.values[program.root(value)].kind == "constant" for value in step.reads())


def _settled(value: ir.Value) -> ir.Value:
    """A value in layout ``any`` gets the plain one."""
    return replace(value, layout=plain_layout(len(value.shape))) if value.layout == "any" else value
