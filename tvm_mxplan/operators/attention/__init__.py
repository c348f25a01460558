"""Attention, with rotary places in front of it and with caches of keys and values, as operators of Relax."""

from .operator import NAME, ROTARY, Attention, attention, attention_of, parts, register, rotary

__all__ = [
    "NAME",
    "ROTARY",
    "Attention",
    "attention",
    "attention_of",
    "parts",
    "register",
    "rotary",
]
