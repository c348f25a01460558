"""Memory: live ranges, the allocation problem they make, and its solution as arena offsets."""

from .plan_memory import PlanMemory

__all__ = ["PlanMemory"]
