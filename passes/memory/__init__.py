"""Memory inside regions: live ranges, the allocation problem they make, and its solution as arena offsets.

Between regions, and in modules without any, ``passes/storage`` does the same for lowered functions.
"""

from .plan_memory import PlanMemory

__all__ = ["PlanMemory"]
