"""Exported programs of PyTorch with their weights as parameters.

A program may be exported in training mode or for inference.  In a copy of its graph, before ATen takes it
apart, batch norms read their running statistics and dropouts drop, so that one form is left of both:
``forward.py`` turns them into those of training.  Parameters keep the program's names; what batch norms
keep running is state; other buffers are constants.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..errors import InvalidInputError, UnsupportedError
from ..frontend.origins import OriginBuilder
from ..frontend.torch.export import decomposed
from ..frontend.torch.graph import GraphImporter
from ..frontend.torch.names import operator_name, result_names
from ..frontend.torch.program import parameter_of, result_tensor, user_results
from ..frontend.torch.tensors import Weights, dtype_name
from ..passes.canonicalize.fold_constants import FoldConstants
from ..passes.canonicalize.name_symbols import NameSymbols
from ..passes.canonicalize.recover_operators import RecoverOperators
from .exported import with_modes, with_stops
from .model import FLOATS, Model, Wanted, chosen, kernels_of, port_of

SOURCE = "exported program"
_BATCH_NORM = "aten._native_batch_norm_legit_no_training.default"
_MAY_LEARN = ("PARAMETER", "USER_INPUT")
_COUNTS = ("aten.add_.Tensor", "aten.add.Tensor")
"""Operators by which a batch norm counts its calls."""


def model_of_program(program: Any, wanted: Wanted) -> Model:
    """The model; see :func:`tvm_mxplan.training.model.model_of`."""
    if wanted.inputs is not None:
        raise InvalidInputError(
            "inputs: an exported program has its inputs; export it with the shapes to train"
        )
    if wanted.params is not None:
        raise InvalidInputError(
            "params: an exported program holds its weights; put others into the model, and export it then"
        )
    program = decomposed(_for_training(program))
    _check_effects(program)
    builder = OriginBuilder()
    importer = GraphImporter(builder, {}, Weights(shared=True), SOURCE, trains=True)
    inputs, held, learned = _placeholders(program, importer)
    params = {name: _variable(name, array) for name, array in held.arrays.items()}
    for node, name in held.names.items():
        importer.values[node] = params[name]
    with builder.function("main", [*inputs.values(), *params.values()]):
        with builder.dataflow():
            results = importer.run(program.graph_module)
            kept = user_results(program, results, SOURCE)
            tensors = [result_tensor(importer, value) for value, _ in kept]
            fields = [builder.emit_output(tensor) for tensor in tensors]
        builder.emit_func_output(fields[0] if len(fields) == 1 else relax.Tuple(fields))
    mod = tvm.transform.Sequential([NameSymbols(), FoldConstants(), RecoverOperators()])(builder.get())
    function = mod["main"]
    return Model(
        function,
        tuple(port_of(name, param) for name, param in zip(inputs, function.params, strict=False)),
        held.arrays,
        chosen(learned, held.arrays, wanted.trainable),
        tuple(result_names([path for _, path in kept])),
        unbiased=True,
        kernels=kernels_of(mod),
    )


class _Held:
    """Tensors that the program holds, each once, whatever names it has."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.names: dict[Any, str] = {}
        self._places: dict[tuple[Any, ...], str] = {}

    def add(self, node: Any, name: str, tensor: Any) -> str:
        """The name under which a placeholder's tensor is held."""
        if dtype_name(tensor.dtype) not in FLOATS:
            raise UnsupportedError(
                f"{SOURCE}: {name!r} is of {dtype_name(tensor.dtype)}; training needs "
                f"{' or '.join(FLOATS)}: convert the model first"
            )
        place = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()))
        first = self._places.setdefault(place, name) if tensor.numel() else name
        if first not in self.arrays:
            self.arrays[first] = tensor.detach().cpu().contiguous().numpy()
        self.names[node] = first
        return first


def _for_training(program: Any) -> Any:
    """A copy of the program whose batch norms and dropouts are the ones that are turned into training's."""
    made = copy.copy(program)
    made._graph_module = copy.deepcopy(program.graph_module)
    placeholders = [node for node in made.graph_module.graph.nodes if node.op == "placeholder"]
    specs = zip(placeholders, program.graph_signature.input_specs, strict=True)
    with_stops(made.graph_module, {node for node, spec in specs if spec.kind.name not in _MAY_LEARN})
    with_modes(made.graph_module)
    return made


def _check_effects(program: Any) -> None:
    """UnsupportedError for a program that changes what outlives a call, but for counts of batch norms."""
    outputs = next(node for node in program.graph.nodes if node.op == "output").args[0]
    for spec, value in zip(program.graph_signature.output_specs, outputs, strict=True):
        if not spec.kind.name.endswith("_MUTATION") or _counts_calls(value):
            continue
        raise UnsupportedError(
            f"{SOURCE}: writes to {spec.target!r}, and of a model's buffers a step changes running "
            "statistics of batch norms alone; return the new value instead"
        )


def _counts_calls(value: Any) -> bool:
    """Whether a value is a whole number that goes up by a constant, which nothing else reads."""
    if operator_name(value.target) not in _COUNTS or len(value.users) != 1:
        return False
    tensor = value.meta["val"]
    return not tensor.dtype.is_floating_point and tensor.numel() == 1 and isinstance(value.args[1], int)


def _placeholders(program: Any, importer: GraphImporter) -> tuple[dict[str, relax.Var], _Held, list[str]]:
    """Inputs by name, what the program holds of weights and statistics, and the names that learn."""
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    tensors = {**dict(program.named_buffers()), **program.state_dict, **program.constants}
    statistics = set(_statistics(program))
    inputs: dict[str, relax.Var] = {}
    held = _Held()
    learned: dict[str, None] = {}  # in order, each once: weights may be tied
    for node, spec in zip(nodes, program.graph_signature.input_specs, strict=True):
        kind = spec.kind.name
        if kind == "PARAMETER":
            tensor = tensors[spec.target]
            name = held.add(node, spec.target, tensor)
            if tensor.requires_grad:
                learned[name] = None
        elif kind == "BUFFER" and node in statistics:
            held.add(node, spec.target, tensors[spec.target])
        elif kind in ("BUFFER", "CONSTANT_TENSOR"):
            importer.known[node] = _with_values(spec.target, tensors[spec.target])
        elif kind != "USER_INPUT":
            raise UnsupportedError(f"{SOURCE}: input {spec.arg.name!r} is a {kind}; expected a tensor")
        elif type(spec.arg).__name__ == "ConstantArgument":
            importer.values[node] = spec.arg.value
        else:
            inputs[node.name] = _input(node, importer)
            importer.values[node] = inputs[node.name]
    return inputs, held, list(learned)


def _with_values(name: str, tensor: Any) -> Any:
    if type(tensor).__name__ == "FakeTensor":
        raise UnsupportedError(
            f"{SOURCE}: {name!r} is a constant without values, as .data of a weight leaves it; "
            "write .detach() instead"
        )
    return tensor


def _input(node: Any, importer: GraphImporter) -> relax.Var:
    shape = getattr(node.meta["val"], "shape", None)
    if shape is None or not all(isinstance(extent, int) for extent in shape):
        found = "a number that varies" if shape is None else f"of the shape {list(map(str, shape))}"
        raise UnsupportedError(
            f"{SOURCE}: input {node.name!r} is {found}; training needs shapes that are numbers: export the "
            "model without dynamic_shapes"
        )
    return parameter_of(node, importer)


def _statistics(program: Any) -> Iterator[Any]:
    """Placeholders that batch norms keep running."""
    for node in program.graph.nodes:
        if node.op == "call_function" and operator_name(node.target) == _BATCH_NORM:
            yield from node.args[3:5]


def _variable(name: str, array: np.ndarray) -> relax.Var:
    return relax.Var(name.replace(".", "_"), relax.TensorType(list(array.shape), str(array.dtype)))
