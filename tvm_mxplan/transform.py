"""The passes by name, for use in anyone's pipeline.

tvm.transform.Sequential([FoldConstants(), SimplifyInference(), PartitionRegions(), BuildPrograms(),
                          InferLayouts(), PropagateLayouts(), PlanMemory(), EmitModules()])(mod)
"""

from __future__ import annotations

from typing import Any

from .byoc.backend import Backend
from .byoc.onednn.backend import OneDNN
from .passes import layout, memory, region
from .passes.canonicalize import FoldConstants, RecoverOperators, SimplifyInference
from .passes.memory import storage_rewrite
from .passes.region.emit_modules import register_codegen


def PartitionRegions(backend: Backend | None = None, rejections: dict[str, str] | None = None) -> Any:
    """Group what the library takes into regions; ``rejections`` is filled with reasons for the rest."""
    return region.PartitionRegions(backend or OneDNN(), rejections)


def BuildPrograms(backend: Backend | None = None) -> Any:
    """A region program for every region."""
    return region.BuildPrograms(backend or OneDNN())


def InferLayouts(backend: Backend | None = None, policy: str = "cost") -> Any:
    """A physical layout for every value; reorders where layouts meet."""
    return layout.InferLayouts(backend or OneDNN(), policy)


def PropagateLayouts(backend: Backend | None = None) -> Any:
    """Tensors between regions keep the layout in which they are, where that saves reorders."""
    return layout.PropagateLayouts(backend or OneDNN())


def PlanMemory(backend: Backend | None = None) -> Any:
    """One arena for each region."""
    return memory.PlanMemory(backend or OneDNN())


def StorageRewrite() -> Any:
    """One arena for each lowered function; takes the place of TVM's ``StaticPlanBlockMemory``."""
    return storage_rewrite.StorageRewrite()


def EmitModules(backend: Backend | None = None) -> Any:
    """Runtime modules in place of regions."""
    backend = backend or OneDNN()
    register_codegen(backend)
    return region.EmitModules(backend)


__all__ = [
    "BuildPrograms",
    "EmitModules",
    "FoldConstants",
    "InferLayouts",
    "PartitionRegions",
    "PlanMemory",
    "PropagateLayouts",
    "RecoverOperators",
    "SimplifyInference",
    "StorageRewrite",
]
