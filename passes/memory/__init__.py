"""Memory: live ranges, the allocation problem they make, and its solution as arena offsets.

Inside regions ``PlanMemory``, between them (and in modules without any) ``StorageRewrite``.
"""

from .plan_memory import PlanMemory
from .storage_rewrite import StorageRewrite

__all__ = ["PlanMemory", "StorageRewrite"]
