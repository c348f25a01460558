"""Roles of operands: of what steps write, and of the numbers by which integers stand for real ones."""

from __future__ import annotations

RESULT_ROLES = (
    "dst",
    "last_hidden",
    "last_cell",
    "batch_mean",
    "batch_variance",
    "scale_gradient",
    "shift_gradient",
    "made_scale",
    "made_zero_point",
    "kept_gates",
    "kept_cells",
    "reset_gradient",
    "hidden_gradient",
    "cell_gradient",
    "order",
    "joined_key",
    "joined_value",
)
"""Roles of what steps write; every other operand is read."""

SCALE_ROLES = ("src_scale", "src_zero_point", "weights_scale", "dst_scale", "dst_zero_point")
"""Roles of the numbers by which integers stand for real ones; scales are float32, zero points int32.

A product with ``src_scale`` and ``weights_scale`` multiplies integers, in float32 behind that; with
``dst_scale`` it writes integers.
"""
