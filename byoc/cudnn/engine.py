"""cuDNN's engine: what runs, caches and exports regions on a GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm_mxplan.byoc import runtime_functions
from tvm_mxplan.byoc.engine import Engine, FailedPlan
from tvm_mxplan.byoc.region_module import program_of

from . import library
from .plans.record import digest_of
from .plans.store import STORE, title

if TYPE_CHECKING:
    from tvm_mxplan.core.program.program import Program


class CudnnEngine(Engine):
    """cuDNN on a GPU; see :class:`tvm_mxplan.byoc.engine.Engine`."""

    name = "cudnn"

    def load(self) -> None:
        library.load()

    def code(self) -> dict[str, str]:
        return self.versions()

    def versions(self) -> dict[str, str]:
        version = library.version()
        return {"cuDNN": version} if version else {}

    def create_module(self, symbol: str, program: bytes, constants: Sequence[Any]) -> Any:
        return library.create_module(symbol, program, constants)

    def stats(self, module: Any) -> dict[str, Any]:
        """The runtime's, with the engines that took the place of those that failed."""
        stats = runtime_functions.stats(module)
        failed = self.failed_plans(program_of(module))
        ran = {one.step: one.successor for one in failed if one.successor}
        for specialization in stats["specializations"]:
            for step in specialization["steps"]:
                step["implementation"] = ran.get(step["name"], step["implementation"])
        return stats

    def failed_plans(self, program: Program) -> list[FailedPlan]:
        plans = {step.name: digest_of(step.prepared) for step in program.steps if step.prepared}
        return [
            FailedPlan(step, *told)
            for region, step, digest, *told in library.failures()
            if region == program.name and plans.get(step) == digest
        ]

    def split_weights(self, module: Any) -> Any:
        return runtime_functions.split_weights(module)

    def export_packed(self, module: Any, packed: bool) -> None:
        runtime_functions.export_packed(module, False)  # filters are stored as engines want them

    keeps_plans = True

    def kept_plans(self) -> dict[str, bytes]:
        return STORE.all()

    def add_plans(self, plans: Mapping[str, bytes]) -> None:
        STORE.add(plans)

    def plan_title(self, plan: bytes) -> dict[str, Any]:
        return title(plan)

    def plan_versions(self) -> dict[str, str]:
        return library.versions()

    def device_properties(self) -> str:
        return json.dumps(library.device_properties(), indent=1, sort_keys=True)

    def device_libraries(self) -> list[str]:
        return library.cuda_runtime()

    def absent(self) -> str:
        from tvm_mxplan.errors import UnsupportedError

        try:
            library.device()
        except UnsupportedError as error:
            return str(error)
        return ""
