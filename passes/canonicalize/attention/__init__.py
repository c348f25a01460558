"""Attention, the rotary places in front of it, and caches of its keys and values."""

from .attend_caches import AttendCaches
from .recover_attention import RecoverAttention
from .recover_rotary import RecoverRotary

__all__ = ["AttendCaches", "RecoverAttention", "RecoverRotary"]
