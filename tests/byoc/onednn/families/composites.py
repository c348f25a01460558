"""Calls of one operator as a library's translation opens them, without patterns and passes."""

from __future__ import annotations

from tvm import relax

from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.relax_types import dtype_of, shape_of


def tensor(name: str, *shape: object, dtype: str = "float32") -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, dtype))


def typed(call: relax.Call) -> relax.Call:
    """The call with the type of its result inferred."""
    return relax.BlockBuilder().normalize(call)


def composite_of(call: relax.Call) -> Composite:
    """A composite of one call, whose variables are the inputs of a region."""
    builder = ProgramBuilder("region")
    params = {
        arg: builder.port("input", str(arg), shape_of(arg), dtype_of(arg))  # type: ignore[arg-type]
        for arg in dict.fromkeys(call.args)
        if isinstance(arg, relax.Var)
    }
    return Composite(builder, params, {}, typed(call))


def roles(c: Composite, step: ir.Step) -> dict[str, int]:
    """Values of a step's operands by role."""
    return {operand.role: operand.value for operand in step.operands}


def shapes(c: Composite, step: ir.Step) -> dict[str, tuple[int, ...]]:
    """Shapes of a step's operands by role."""
    return {role: c.builder.values[value].shape for role, value in roles(c, step).items()}  # type: ignore[misc]
