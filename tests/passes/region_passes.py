"""The passes that put what oneDNN takes of a module into regions, each with its program."""

from __future__ import annotations

import tvm
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.region import BuildPrograms, PartitionRegions
from tvm_mxplan.passes.region.name_operators import NameOperators


def region_passes(backend: OneDNN, named: bool = False) -> list[tvm.transform.Pass]:
    """Operators that are named have the names that reports and options know, and no two regions are equal."""
    return [
        relax.transform.ConvertToDataflow(1),
        *([NameOperators()] if named else []),
        DispatchOperators(preference_of([backend])),
        PartitionRegions(),
        BuildPrograms(backend),
    ]
