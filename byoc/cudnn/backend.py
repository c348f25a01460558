"""cuDNN as a backend: the tables of this folder behind the protocol that the passes know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import DeviceChoice, OnDevice, Refuse, Translation
from tvm_mxplan.byoc.translate import check_numbers, translate_region
from tvm_mxplan.core.description import Description, Implementation, StepInfo, ValueInfo
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.step_facts import StepFacts
from tvm_mxplan.errors import InvalidInputError, UnsupportedError

from . import layout_rules, library
from .codegen import TRANSLATE
from .costs import cost
from .device import read_device
from .patterns import NAME, fusion_patterns
from .plans import Plans, Rules

TRANSFORM = "transform_tensor"
"""The name of the layout conversion: no engine, a function of cuDNN's that is there on every device."""


class Cudnn:
    """cuDNN on a GPU; see :class:`tvm_mxplan.byoc.backend.DeviceBackend`."""

    library = "cudnn"
    name = NAME
    takes_arena = True
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
        plans = Plans(device, Rules(choice.tf32, choice.deterministic))
        return OnDevice(Cudnn(plans), device.arch, str(device))

    @property
    def plans(self) -> Plans:
        if self._plans is None:
            raise UnsupportedError("cuDNN: no device is known to make plans for; compile for a target")
        return self._plans

    def layout_rules(self, step: ir.Step) -> LayoutRules:
        return layout_rules.RULES

    def layouts(self) -> LayoutRegistry:
        return LayoutRegistry()

    def patterns(self, refuse: Refuse) -> list[relax.transform.FusionPattern]:
        return fusion_patterns(refuse)

    def translate(self, region: relax.Function, name: str) -> Translation:
        program, constants = translate_region(region, name, NAME, TRANSLATE)
        check_numbers(program)
        return Translation(program, constants)

    def describe(self, program: ir.Program) -> Description:
        values = [_settled(value) for value in program.values]
        known = replace(program, values=tuple(values))
        steps = tuple(self._step(known, step) for step in program.steps)
        infos = tuple(ValueInfo(value.layout, layout_rules.nbytes(value)) for value in values)
        return Description(steps, infos)

    def _step(self, program: ir.Program, step: ir.Step) -> StepInfo:
        if isinstance(step.attrs, ir.Reorder):
            return self._reorder(program, step)
        try:
            descriptor = self.plans.descriptor(program, step)
        except UnsupportedError as error:
            return StepInfo("", 0, 0, f"{step.kind} {step.name}: {error}")
        answer = self.plans.answer(descriptor, program.values[step.dst].dtype)
        if "plan" not in answer:
            return StepInfo("", 0, 0, f"{step.kind} {step.name}: {answer['error']}", descriptor=descriptor)
        engine = answer["engines"][answer["chosen"]]
        weights = layout_rules.nbytes(program.values[step.operand("weights")])
        return StepInfo(engine["name"], engine["workspace"], weights, "", descriptor=descriptor)

    @staticmethod
    def _reorder(program: ir.Program, step: ir.Step) -> StepInfo:
        src, dst = program.values[step.operand("src")], program.values[step.dst]
        error = ""
        if src.dtype != dst.dtype or src.dtype not in layout_rules.TYPES or len(src.shape) > 5:
            error = f"reorder {step.name}: {src.dtype} of rank {len(src.shape)} to {dst.dtype}"
        return StepInfo("" if error else TRANSFORM, 0, 0, error, descriptor=f"{src.layout} {dst.layout}")

    def implementation(self, name: str) -> Implementation:
        return Implementation(name, name.partition("_")[0])

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        return cost(facts, machine)

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        del reason  # plans have one, the report tells it
        self.plans.refuse(descriptor, implementation)

    def create_module(
        self, symbol: str, program: ir.Program, constants: list[tvm.runtime.Tensor]
    ) -> tvm.runtime.Module:
        steps = tuple(
            step
            if isinstance(step.attrs, ir.Reorder)
            else replace(step, prepared=self.plans.record(program, step))
            for step in program.steps
        )
        return library.create_module(symbol, replace(program, steps=steps), constants)

    def trial(self, program: ir.Program, constants: list[np.ndarray]) -> Callable[..., object]:
        raise UnsupportedError("plans of a GPU are not run while they are made")

    def modules_to_export(self, module: tvm.runtime.Module) -> list[tvm.runtime.Module]:
        return [module, module["mxplan.split_weights"]()]


def _settled(value: ir.Value) -> ir.Value:
    """A value in layout ``any`` gets the plain one."""
    return replace(value, layout=plain_layout(len(value.shape))) if value.layout == "any" else value
