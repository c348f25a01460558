"""The element types that oneDNN computes in, by the instruction set that it generates code for."""

from __future__ import annotations

_BFLOAT16 = ("bf16", "fp16", "amx")
"""Parts of the names of instruction sets that multiply bfloat16: avx512_core_bf16 and those above."""

_INT8 = ("vnni", *_BFLOAT16)
"""Likewise of those that multiply integers of 8 bits, with sums that do not saturate."""

_WORDS = ("avx2",)
"""Those for which kernels of our own multiply integers, as words of 16 bits."""

_OWN_INT8 = "kernels of our own take convolutions, dense and depthwise, and rows times a matrix"


def missing_type(dtype: str, isa: str) -> str:
    """The reason for which an instruction set is none for a type; '' if it is one.

    Without instructions of its own, oneDNN emulates bfloat16 in code that is slower than that for float32.
    """
    if dtype == "float32" or (dtype == "bfloat16" and any(part in isa for part in _BFLOAT16)):
        return ""
    name = isa.removeprefix("cpu_isa_")
    if dtype == "int8":
        if any(part in isa for part in _INT8):
            return ""
        why = f"oneDNN generates code for {name}, int8 wants avx512_core_vnni or above"
        return f"{why}; {_OWN_INT8}" if multiplies_words(isa) else why
    if dtype == "bfloat16":
        return f"oneDNN generates code for {name}, bfloat16 wants avx512_core_bf16 or above"
    return f"oneDNN is used for float32, bfloat16 and int8, not for {dtype}"


def multiplies_words(isa: str) -> bool:
    """Whether kernels of our own stand in for oneDNN's products of integers, which saturate there."""
    return isa.removeprefix("cpu_isa_") in _WORDS
