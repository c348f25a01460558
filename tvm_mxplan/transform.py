"""The passes by name, for use in anyone's pipeline.

tvm.transform.Sequential([FoldConstants(), SimplifyInference(), NameOperators(), DispatchOperators(),
                          PartitionRegions(), BuildPrograms(), ChooseAlgorithms(), InferLayouts(),
                          PropagateLayouts(), PlanMemory(), EmitModules()])(mod)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax

from .byoc import registry
from .byoc.backend import Backend
from .core.decisions.journal import Journal
from .core.policies import Policy, Rule
from .passes import borders, dispatch, kernels, layout, memory, region
from .passes.canonicalize import FoldConstants, RecoverOperators, SimplifyInference
from .passes.dispatch.implementations import preference_of
from .passes.storage import storage_rewrite


def _default() -> Backend:
    """The library that passes work for where none is given."""
    return registry.planner(registry.DEFAULT[0])


def NameOperators() -> Any:
    """A name for every operator, which its steps carry; without it, steps are numbered in each region."""
    return region.NameOperators()


def DispatchOperators(
    backend: Backend | None = None,
    journal: Journal | None = None,
    prefer: Mapping[str, str] | None = None,
) -> Any:
    """Puts what the library takes into composites; ``journal`` is told the reasons for the rest.

    Composites stand in dataflow blocks alone, so what is outside of them is put into some first.
    """
    preference = preference_of([backend or _default()], first=prefer or {})
    dispatched = dispatch.DispatchOperators(preference, journal)
    return tvm.transform.Sequential(
        [relax.transform.ConvertToDataflow(1), dispatched], name="DispatchOperators"
    )


def PartitionRegions() -> Any:
    """Group composites into regions."""
    return region.PartitionRegions()


def BuildPrograms(backend: Backend | None = None) -> Any:
    """A region program for every region."""
    return region.BuildPrograms(backend or _default())


def ChooseAlgorithms(backend: Backend | None = None, rule: Rule = "cost") -> Any:
    """An algorithm for every convolution."""
    return dispatch.ChooseAlgorithms(backend or _default(), rule)


def InferLayouts(
    backend: Backend | None = None, policy: Policy = "cost", layers: Mapping[str, str] | None = None
) -> Any:
    """A physical layout for every value; reorders where layouts meet; ``layers`` forces some by name."""
    return layout.InferLayouts(backend or _default(), policy, layers=layers or {})


def PropagateLayouts(backend: Backend | None = None) -> Any:
    """Tensors between regions keep the layout in which they are, where that saves reorders."""
    return borders.PropagateLayouts(backend or _default())


def PlanMemory(backend: Backend | None = None) -> Any:
    """One arena for each region."""
    return memory.PlanMemory(backend or _default())


def StorageRewrite() -> Any:
    """One arena for each lowered function; takes the place of TVM's ``StaticPlanBlockMemory``."""
    return storage_rewrite.StorageRewrite()


def SerialSmallKernels() -> Any:
    """TVM's kernels with little to do wake no threads; for what TVM's pipeline made."""
    return kernels.SerialSmallKernels()


def EmitModules(backend: Backend | None = None) -> Any:
    """Runtime modules in place of regions."""
    return region.EmitModules(backend or _default())


__all__ = [
    "BuildPrograms",
    "ChooseAlgorithms",
    "DispatchOperators",
    "EmitModules",
    "FoldConstants",
    "InferLayouts",
    "NameOperators",
    "PartitionRegions",
    "PlanMemory",
    "PropagateLayouts",
    "RecoverOperators",
    "SerialSmallKernels",
    "SimplifyInference",
    "StorageRewrite",
]
