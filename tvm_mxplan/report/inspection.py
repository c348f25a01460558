"""Shows a compilation's products as text: the Relax module between phases, and programs of regions."""

from __future__ import annotations

from typing import Any

import tvm

from ..byoc import registry
from ..byoc.engine import Engine
from ..byoc.region_module import modules_under, program_of
from ..core.program.program import Program
from ..pipeline_registration import NAME


@tvm.instrument.pass_instrument
class RelaxDump:
    """Keeps the module with its regions replaced by calls, before TVM lowers the rest.

    with tvm.transform.PassContext(instruments=[dump := RelaxDump()]):
        tvm_mxplan.compile(model)
    print(dump.text)

    Where nothing of ours runs, it is the module as imported.  Constants are left out.
    """

    def __init__(self) -> None:
        self.text = ""

    def run_before_pass(self, mod: tvm.IRModule, info: tvm.transform.PassInfo) -> None:
        if info.name == NAME:
            self.text = mod.script(show_meta=False)

    def run_after_pass(self, mod: tvm.IRModule, info: tvm.transform.PassInfo) -> None:
        if info.name == "EmitModules":
            self.text = mod.script(show_meta=False)


def region_programs(module: Any) -> str:
    """The program of every region in a runtime module, in the runtime's own words; '' if there is none."""
    return "\n\n".join(region.inspect_source() for region in region_modules(module))


def decoded_programs(module: Any) -> list[Program]:
    """The program of every region in a runtime module, as data."""
    return [program_of(region) for region in region_modules(module)]


def region_modules(module: Any) -> list[Any]:
    """The modules of regions that a runtime module holds."""
    return [region for _, region in regions_of(module)]


def regions_of(module: Any) -> list[tuple[Engine, Any]]:
    """The modules of regions that a runtime module holds, each behind the engine that made it."""
    nodes = modules_under(getattr(module, "mod", module))
    return [(engine, node) for node in nodes if (engine := registry.engine_of(node))]


def other_implementations(module: Any) -> list[str]:
    """Steps of a runtime module that have run, and not by the implementation they were planned for."""
    reasons = []
    for engine, region in regions_of(module):
        program = program_of(region)
        if program.symbols:  # planned for typical numbers, made for those at hand
            continue
        for specialization in engine.stats(region)["specializations"]:
            for step, ran in zip(program.steps, specialization["steps"], strict=True):
                if ran["implementation"] != step.implementation:
                    reasons.append(
                        f"{step.kind} {step.name} runs on {ran['implementation']} here, "
                        f"and was planned for {step.implementation}"
                    )
    return list(dict.fromkeys(reasons))  # once, however many numbers of threads it ran with


def failed_plans(module: Any) -> tuple[str, ...]:
    """The plans of a runtime module that failed in this process, and what ran in their places."""
    told = (
        str(one) for engine, region in regions_of(module) for one in engine.failed_plans(program_of(region))
    )
    return tuple(dict.fromkeys(told))
