"""Precisions by the names of options, and what was decided about a region's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

Precision: TypeAlias = Literal["f32", "bf16"]
ELEMENT_TYPES: Mapping[Precision, str] = MappingProxyType({"f32": "float32", "bf16": "bfloat16"})
"""The element type that steps of a precision read and, where nothing wants more, write; sums are float32."""
PRECISIONS: tuple[Precision, ...] = tuple(ELEMENT_TYPES)
AS_STATED = "model"
"""In place of a precision: bfloat16 where the model states it of an operator, else float32."""
AUTO = "auto"
"""In place of a precision: what costs least where ``max_relative_error`` bounds the errors of roundings."""
HALF = "f16"
"""In place of a precision: float16 where a library computes in it, which none does yet, else float32."""
WISHES = (AS_STATED, *PRECISIONS, HALF, AUTO)
SHORT_NAMES = {dtype: precision for precision, dtype in ELEMENT_TYPES.items()}


@dataclass(frozen=True)
class PrecisionDecision:
    """In which types the steps of one region compute.

    Attributes
    ----------
    wanted : the option ``precision``.
    counts : how many steps read each type, casts left out.
    casts : conversions between types that are steps of their own.
    cost_us, float32_us : estimates for the region as decided, and with everything in float32; -1 where
        nothing was weighed.
    error : what roundings to shorter types are estimated to add to the relative error of the results; -1
        where nothing was weighed.
    max_error : what they may add in all regions together; -1 where nothing bounds it.
    kept : steps that stay in float32 where another precision is wanted, and why.
    why_not : why the region's library computes in no other type at all, '' if it does.
    integers_why_not : why products of a quantised model take real numbers, '' if they take integers.
    """

    wanted: str
    counts: Mapping[str, int] = field(default_factory=dict)
    casts: int = 0
    cost_us: float = -1.0
    float32_us: float = -1.0
    error: float = -1.0
    max_error: float = -1.0
    kept: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""
    integers_why_not: str = ""

    def __str__(self) -> str:
        if not self.integers_why_not:
            return self._types()
        integers = f"integers: products of the quantised model in real numbers, {self.integers_why_not}"
        return f"{self._types()}; {integers}" if self.counts or self.why_not else integers

    def _types(self) -> str:
        if self.why_not:
            return f"precision {self.wanted}: everything in f32, {self.why_not}"
        counts = ", ".join(
            f"{count} step(s) in {SHORT_NAMES.get(dtype, dtype)}" for dtype, count in self.counts.items()
        )
        costs = f"; about {self.cost_us:,.0f} us, {self.float32_us:,.0f} in f32" if self.cost_us >= 0 else ""
        error = f"; adds an error of {self.error:.1e}" if self.error >= 0 else ""
        bound = f" where {self.max_error:.1e} may be added in all" if self.max_error >= 0 else ""
        return f"precision {self.wanted}: {counts}, {self.casts} cast(s){costs}{error}{bound}"
