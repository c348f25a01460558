"""Exported programs as Relax modules: parameters become constants, the user's inputs become parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import relax, tirx

from ...errors import InvalidInputError, UnsupportedError
from ...execution.signature import CONDITIONS, OUTPUTS
from ...passes.storage.relax_sizes import UPPER_BOUND
from ..onnx.dimensions.dims import expression
from ..origins import OriginBuilder
from ..relax.relax_bounds import LOWER_BOUND
from .dimensions import Bound
from .graph import GraphImporter
from .names import places, result_names
from .sizes import size_of
from .tensors import Weights, dtype_name

_UNSTATED = (0, 2)
"""Least extents that PyTorch writes where none is stated."""
_WRITES = {
    "BUFFER_MUTATION": "writes to its buffer",
    "PARAMETER_MUTATION": "writes to its parameter",
    "USER_INPUT_MUTATION": "writes to its input",
}


def import_program(
    program: Any, dimensions: Mapping[str, Bound], source: str = "model", guards: Sequence[str] = ()
) -> tvm.IRModule:
    """The program's graph, decomposed already, as a Relax module with the user's names of inputs and outputs.

    Parameters
    ----------
    dimensions : by the names of PyTorch's symbols, what they are called and between which bounds they lie.
    guards : conditions on them, by what they are called.

    Raises
    ------
    UnsupportedError : the module, the operator and the reason.
    """
    _check_effects(program, source)
    builder = OriginBuilder()
    variables = {symbol: tirx.Var(bound.name, "int64") for symbol, bound in dimensions.items()}
    importer = GraphImporter(builder, variables, Weights(shared=False), source)
    parameters = _bound_placeholders(program, importer, source)
    with builder.function("main", parameters, attrs=bounds_as_attributes(dimensions)):
        with builder.dataflow():
            results = importer.run(program.graph_module)
            kept = user_results(program, results, source)
            tensors = [result_tensor(importer, value) for value, _ in kept]
            result = builder.emit_output(tensors[0] if len(tensors) == 1 else relax.Tuple(tensors))
        builder.emit_func_output(result)
    mod = builder.get()
    names = result_names([path for _, path in kept])
    mod["main"] = mod["main"].with_attr(OUTPUTS, names)
    return under_conditions(mod, importer.conditions(program.graph_module, guards))


def under_conditions(mod: tvm.IRModule, conditions: Sequence[str]) -> tvm.IRModule:
    """The module with conditions on its named dimensions, which calls are held to."""
    if conditions:
        mod["main"] = mod["main"].with_attr(CONDITIONS, list(conditions))
    return mod


def bounds_as_attributes(dimensions: Mapping[str, Bound]) -> dict[str, Any]:
    """Bounds of named dimensions as TVM's passes know them, and calls are held to.

    A least extent of 2 is left out: PyTorch writes it where none is stated, and holds no call to it.
    """
    found: dict[str, Any] = {}
    lower = {bound.name: bound.lower for bound in dimensions.values() if bound.lower not in _UNSTATED}
    upper = {bound.name: bound.upper for bound in dimensions.values() if bound.upper is not None}
    if lower:
        found[LOWER_BOUND] = lower
    if upper:
        found[UPPER_BOUND] = upper
    return found


def _check_effects(program: Any, source: str) -> None:
    """UnsupportedError for a program that changes what outlives a call."""
    for spec in program.graph_signature.output_specs:
        if spec.kind.name in _WRITES:
            raise UnsupportedError(
                f"{source}: {_WRITES[spec.kind.name]} {spec.target!r}, and a compiled model keeps no state; "
                "return the new value instead, or call model.eval() first"
            )


def _bound_placeholders(program: Any, importer: GraphImporter, source: str) -> list[relax.Var]:
    """The parameters of the function; placeholders for weights become constants."""
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    weights = {**dict(program.named_buffers()), **program.state_dict, **program.constants}
    parameters = []
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if spec.kind.name in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            importer.known[node] = weights[spec.target]
        elif spec.kind.name != "USER_INPUT":
            raise UnsupportedError(
                f"{source}: input {spec.arg.name!r} is a {spec.kind.name}; expected a tensor"
            )
        elif type(spec.arg).__name__ == "ConstantArgument":
            importer.values[node] = spec.arg.value
        elif type(spec.arg).__name__ != "TensorArgument":
            raise UnsupportedError(
                f"{source}: input {spec.arg.name!r} is a number that varies; "
                "expected tensors: make it one, or leave it out of dynamic_shapes"
            )
        else:
            parameters.append(parameter_of(node, importer))
            importer.values[node] = parameters[-1]
    return parameters


def parameter_of(node: Any, importer: GraphImporter) -> relax.Var:
    """The parameter for a placeholder."""
    tensor = node.meta["val"]
    dims = [expression(size_of(size, importer.variables)) for size in tensor.shape]
    return relax.Var(node.name, relax.TensorType(dims, dtype_name(tensor.dtype)))


def user_results(program: Any, results: Sequence[Any], source: str) -> list[tuple[Any, Sequence[Any]]]:
    """Lists the results of the user's function, each with its place in the structure that is returned.

    Raises
    ------
    InvalidInputError : there is none.
    """
    specs = program.graph_signature.output_specs
    wanted = [
        value
        for value, spec in zip(results, specs, strict=True)
        if spec.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT")
    ]
    found = zip(wanted, places(program.call_spec.out_spec), strict=True)
    kept = [(value, path) for value, path in found if value is not None]
    if not kept:
        raise InvalidInputError(f"{source}: returns no tensor; expected one at least")
    return kept


def result_tensor(importer: GraphImporter, value: Any) -> relax.Expr:
    """A result as a tensor; numbers become tensors without axes."""
    if isinstance(value, relax.Expr) and isinstance(value.ty, relax.TensorType):
        return value
    if isinstance(value, bool | int | float):
        return relax.const(value, {bool: "bool", int: "int64", float: "float32"}[type(value)])
    if tvm.ir.is_prim_expr(value):
        return importer.number(value)
    raise UnsupportedError(f"{importer.source}: returns a {type(value).__name__}; expected tensors")
