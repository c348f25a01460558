"""Shows a compilation's products as text: the Relax module between phases, and programs of regions."""

from __future__ import annotations

from typing import Any

import tvm

from ..byoc import registry
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
    return "\n\n".join(node.inspect_source() for node in region_modules(module))


def decoded_programs(module: Any) -> list[Program]:
    """The program of every region in a runtime module, as data."""
    return [program_of(node) for node in region_modules(module)]


def region_modules(module: Any) -> list[Any]:
    """The modules of regions that a runtime module holds."""
    return [node for node in modules_under(getattr(module, "mod", module)) if registry.engine_of(node)]


def other_implementations(module: Any) -> list[str]:
    """Steps of a runtime module that have run, and not by the implementation they were planned for."""
    reasons = []
    for region in region_modules(module):
        program, engine = program_of(region), registry.engine_of(region)
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
        str(one)
        for region in region_modules(module)
        for one in registry.engine_of(region).failed_plans(program_of(region))  # type: ignore[union-attr]
    )
    return tuple(dict.fromkeys(told))
