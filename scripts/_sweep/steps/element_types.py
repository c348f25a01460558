"""Element types of a step to sweep: ``dt=bf16``, ``dt=bf16:f32``, ``dt=u8:s8`` say what it reads and writes.

The planner says which there are for bfloat16 (``passes/precision/step_types.py``).  Of integers, products
read them with scales, and write real numbers or integers (``zp=``: zero points of the source, the result,
both or none; ``ws=each``: a scale for every result); what only moves or compares numbers keeps its type;
conversions are a kind of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.precision.step_types import StepTypes, operand_type, proposals

from ..grammar import Problem
from .host import in_host
from .subject import Data, Fields, Subject, Tensor

NAMES = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "u8": "uint8", "s8": "int8",
    "s32": "int32", "s64": "int64", "bool": "bool",
}  # fmt: skip
FAMILIES = {"f32": "float32", "bf16": "bfloat16", "int8": "int8", "host": "float32"}
"""Values of --types, and the type that oneDNN may lack; ``host`` is the host library, in all types."""
WITHOUT_PRODUCTS = "int8 without products"
"""The family in the place of int8 where there are no instructions for it: products run on real numbers."""
_PRODUCTS = (ir.Convolution, ir.Deconvolution, ir.MatMul, ir.InnerProduct)
_MOVING = (ir.Concat, ir.Slice, ir.Shuffle, ir.Reorder)
_WORDS = {name: word for word, name in NAMES.items()}


def choose(problem: Problem, made: Subject, family: str, random: np.random.Generator) -> Problem | None:
    """The problem with types of the family; None where a step of this kind has none."""
    if family == "host" or made.library == "host":
        return problem if made.library == family else None
    if family == "f32":
        return problem if made.is_float else None
    if not made.is_float:  # the list says which
        return problem if family in ("int8", WITHOUT_PRODUCTS) else None
    fields = _short(made, random) if family == "bf16" else _integers(made, family == "int8", random)
    return None if fields is None else replace(problem, fields=(*problem.fields, *fields.items()))


def _short(made: Subject, random: np.random.Generator) -> dict[str, str] | None:
    found = proposals(ir.Step("step", made.attrs, ()), "bfloat16")[1:]
    if not found:
        return None
    types = found[int(random.integers(len(found)))]
    return {"dt": f"{_WORDS[types.read]}:{_WORDS[types.written]}"}


def _integers(made: Subject, products: bool, random: np.random.Generator) -> dict[str, str] | None:
    def pick(*options: str) -> str:
        return options[int(random.integers(len(options)))]

    source = pick("u8", "s8")
    if isinstance(made.attrs, _MOVING) or (
        isinstance(made.attrs, ir.Pooling) and made.attrs.algorithm == "max"
    ):
        return {"dt": f"{source}:{source}"}
    constant = any(tensor.role == "weights" and tensor.constant for tensor in made.tensors)
    if not products or not isinstance(made.attrs, _PRODUCTS) or not constant or not made.exact:
        return None
    fields = {"dt": f"{source}:{pick('u8', 's8', 'f32', 'bf16')}", "ws": pick("one", "each")}
    return {**fields, "zp": pick("none", "src", "dst", "both")}


def families_of(wanted: Sequence[str], lacks: Callable[[str], str]) -> list[str]:
    """Families of types to draw from, by what a library lacks of their types."""
    present = [name for name in wanted if not lacks(FAMILIES[name])]
    return [*present, *([WITHOUT_PRODUCTS] if "int8" in wanted and "int8" not in present else [])]


def typed(made: Subject, f: Fields) -> Subject:
    """The step in the types that its problem states; as it is where it states none."""
    host = f.text("lib", "") == "host"
    word = f.text("dt", "f32" if host else "")
    if not word:
        return made
    read, _, written = word.partition(":")
    if host:
        return in_host(made, NAMES[read], NAMES[written or read])
    types = StepTypes(NAMES[read], NAMES[written or read])
    if types.read in ("uint8", "int8") or types.written in ("uint8", "int8"):
        return _of_integers(made, types, f)
    tensors = tuple(
        replace(tensor, dtype=operand_type(tensor.role, tensor.constant, types)) for tensor in made.tensors
    )
    return replace(made, tensors=tensors, written=types.written, added=types.written)


def _of_integers(made: Subject, types: StepTypes, f: Fields) -> Subject:
    product = isinstance(made.attrs, _PRODUCTS)
    tensors: list[Tensor] = []
    for tensor in made.tensors:
        if tensor.role == "src":
            data: Data = "integers" if types.read != "float32" else "fine"
            tensors.append(replace(tensor, dtype=types.read, data=data))
        elif tensor.role == "weights":
            tensors.append(replace(tensor, dtype="int8", data="integer_weights"))
        else:
            tensors.append(tensor)
    if not product and not isinstance(made.attrs, ir.Quantization):
        return replace(made, tensors=tuple(tensors), written=types.written)
    zero, many = f.text("zp", "none"), f.text("ws", "one") == "each"
    along = made.dst[made.attrs.axis] if isinstance(made.attrs, ir.Quantization) and many else 1
    if types.read in ("uint8", "int8"):
        tensors.append(Tensor("src_scale", (along,), True, "scale"))
        if zero in ("src", "both"):
            tensors.append(Tensor("src_zero_point", (along,), True, f"zero_{types.read}", dtype="int32"))
    if product:
        tensors.append(
            Tensor("weights_scale", (made.dst[made.channels] if many else 1,), True, "weights_scale")
        )
    if types.written in ("uint8", "int8"):
        tensors.append(Tensor("dst_scale", (along,), True, "scale"))
        if zero in ("dst", "both"):
            tensors.append(Tensor("dst_zero_point", (along,), True, f"zero_{types.written}", dtype="int32"))
    return replace(made, tensors=tuple(tensors), written=types.written)


def type_of(problem: Problem) -> str:
    """The types that a problem's step reads and writes, in a word for reports."""
    word = Fields(problem).text("dt", "f32")
    read, _, written = word.partition(":")
    return read if not written or read == written else f"{read} to {written}"
