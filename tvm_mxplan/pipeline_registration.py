"""``relax_pipeline="mxplan"``: the pipeline under a name, made when it is first asked for."""

from __future__ import annotations

import tvm
from tvm import relax

from .errors import UnsupportedError

NAME = "mxplan"


def register() -> None:
    """Register the pipeline with Relax; a second call does nothing."""
    if NAME not in relax.pipeline.PIPELINE_MAP:
        relax.register_pipeline(NAME)(_mxplan_pipeline)


def _mxplan_pipeline(**options: object) -> tvm.transform.Pass:
    @tvm.transform.module_pass(opt_level=0, name=NAME)
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        from .byoc import registry
        from .options import Options
        from .pipeline import build_pipeline
        from .targets import GPU, TVM

        target = tvm.target.Target.current(allow_none=True) or tvm.target.Target(TVM)
        kind = str(target.kind.name)
        if kind != TVM:
            known = ", ".join((*registry.names_beside(GPU), GPU))
            raise UnsupportedError(
                f'relax_pipeline="{NAME}" plans for {TVM}, the target is {kind}; for a GPU with CUDA use '
                f'tvm_mxplan.compile(mod, "{known}", device_properties=FILE)'
            )
        return build_pipeline(registry.default_planners(), Options.of(options), target)(mod)

    return run
