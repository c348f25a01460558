"""Regions: which operators a backend gets, the programs that say what they do, and their modules."""

from .build_programs import BuildPrograms
from .emit_modules import EmitModules
from .forget_order import ForgetOrder
from .name_operators import NameOperators
from .outline_blocks import InlineBlocks, OutlineBlocks
from .partition_regions import PartitionRegions

__all__ = [
    "BuildPrograms",
    "EmitModules",
    "ForgetOrder",
    "InlineBlocks",
    "NameOperators",
    "OutlineBlocks",
    "PartitionRegions",
]
