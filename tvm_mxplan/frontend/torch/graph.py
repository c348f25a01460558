"""Imports a graph of ATen operators, node after node, into a Relax function.

A node is tried in this order:

    sizes         arithmetic on sizes: PyTorch has done it, its expression is taken over
    refused       operators that no compiled function can stand for: random numbers, state
    fold          all operands known: PyTorch computes it now
    converters    ours, where TVM's importer lacks an operator or errs
    stock         TVM's

Each result is held against the type that PyTorch states for it, so that a converter that drops a type or an
axis is an error here and no wrong number later.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import tvm
from tvm import relax

from ...core.decisions.origin import Origin
from ...errors import InternalError, InvalidInputError, MxplanError, UnsupportedError, last_line
from ..onnx.dimensions.dims import expression, same, simplified
from ..origins import OriginBuilder
from ..reasons import is_own_mistake
from . import converters, narrow
from .fold import folded, is_foldable
from .kinds import is_symbolic, is_tensor
from .names import module_path, operator_name
from .node import Emitter, Node, Stated, has_tensors
from .sizes import Variables, condition_text, kept_conditions, number_of, size_of
from .tensors import PARTS, Weights, dtype_name, is_complex


class GraphImporter:
    """Imports nodes into the function that a builder has open.

    Parameters
    ----------
    source : what messages call the model.
    trains : the graph is trained: batch norms keep their statistics, dropouts stay.
    """

    def __init__(
        self,
        builder: OriginBuilder,
        variables: Variables,
        weights: Weights,
        source: str,
        *,
        trains: bool = False,
    ) -> None:
        from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

        self.builder = builder
        self.variables = variables
        self.weights = weights
        self.source = source
        self._trains = trains
        self._emitter = Emitter(builder, trains=trains)
        self._stock = ExportedProgramImporter()
        self._stock.block_builder = builder
        self.values: dict[Any, Any] = self._stock.env
        self.known: dict[Any, Any] = {}
        self._of_sizes: set[Any] = set()
        self._names = {
            name: dim if isinstance(dim, int) else str(dim.name) for name, dim in variables.items()
        }

    def run(self, graph_module: Any) -> list[Any]:
        """Import all nodes; the graph's results.

        Its placeholders are there already: those that vary in ``values``, PyTorch's own tensors in ``known``.
        """
        for fx_node in graph_module.graph.nodes:
            if fx_node.op == "placeholder":
                continue
            if fx_node.op == "output":
                results = fx_node.args[0]
                return [self._value(result) for result in results]
            try:
                with self.builder.importing(_origin(fx_node)):
                    self._import(graph_module, fx_node)
            except MxplanError as error:
                raise type(error)(f"{self.called(fx_node)}: {error}") from error
            except Exception as error:
                if is_own_mistake(error):
                    raise InternalError(
                        f"{self.called(fx_node)}: its converter fails ({_last_line(error)}); please report "
                        f"it, and {_ADVICE}"
                    ) from error
                raise UnsupportedError(
                    f"{self.called(fx_node)}: cannot be imported ({_last_line(error)}); {_ADVICE}"
                ) from error
        raise InvalidInputError(f"{self.source}: the graph has no output")

    def number(self, value: Any) -> relax.Expr:
        """An expression over sizes as a tensor without axes."""
        return self._emitter.scalar(value, "int64")

    def size(self, stated: Any) -> Any:
        """A size as an expression; None for a condition on sizes, which PyTorch has put to use already."""
        return size_of(stated, self.variables) if type(stated).__name__ == "SymInt" else None

    def conditions(self, graph_module: Any, guards: Sequence[str] = ()) -> list[str]:
        """Assertions of the graph about sizes that its inputs tell, behind those of ``guards``."""
        asserted = [
            condition_text(condition, self._names, self.called(node))
            for node in graph_module.graph.nodes
            if node.op == "call_function" and operator_name(node.target) == _ASSERTION
            if is_symbolic(condition := getattr(node.args[0], "meta", {}).get("val"))
        ]
        return kept_conditions([*guards, *asserted])

    def called(self, fx_node: Any) -> str:
        """A node as messages name it."""
        where = module_path(fx_node.meta)
        return f"{self.source}: {operator_name(fx_node.target)}{f' in {where}' if where else ''}"

    def _import(self, graph_module: Any, fx_node: Any) -> None:
        if fx_node.op == "get_attr":
            self.known[fx_node] = _attribute(graph_module, fx_node.target)
            return
        if fx_node.op != "call_function":
            raise UnsupportedError(f"a node of kind {fx_node.op}; expected calls of operators")
        stated = fx_node.meta.get("val")
        name = operator_name(fx_node.target)
        if type(stated).__name__ == "SymFloat":
            self.values[fx_node] = number_of(self._emitter, stated, self.variables)
            self._of_sizes.add(fx_node)
        elif is_symbolic(stated):
            self.values[fx_node] = self.size(stated)
        elif isinstance(stated, bool | int | float):
            self.values[fx_node] = stated
        elif name in converters.WITHOUT_RESULT:
            self.values[fx_node] = None
        elif name in converters.REFUSED and not (self._trains and name in converters.TRAINING):
            raise UnsupportedError(converters.REFUSED[name])
        elif name not in converters.REFUSED and is_foldable(fx_node, self.known):
            self.known[fx_node] = folded(fx_node, self.known)
        else:
            for operand in fx_node.all_input_nodes:
                self._value(operand)
            self.values[fx_node] = self._converted(fx_node, name, stated)

    def _converted(self, fx_node: Any, name: str, stated: Any) -> Any:
        if name == "_operator.getitem" and isinstance(self.values[fx_node.args[0]], list):
            part = self.values[fx_node.args[0]][fx_node.args[1]]
            if part is None:
                raise UnsupportedError(f"its result {fx_node.args[1]} is for gradients only; {_ADVICE}")
            return self._checked(part, self._stated(stated)) if is_tensor(stated) else part
        results = list(stated) if isinstance(stated, list | tuple) else [stated]
        expected = [self._stated(result) if is_tensor(result) else None for result in results]
        converter = converters.of(name)
        if _has_complex(fx_node):
            converter = converters.COMPLEX.get(name)
            if converter is None:
                raise UnsupportedError(f"this operator is not supported for complex numbers; {_ADVICE}")
        elif name not in converters.REFUSED and self._follows_from_sizes(fx_node):
            self._of_sizes.add(fx_node)
            converter = converters.ROUNDED.get(name, converter)
        elif self._trains:
            converter = converters.TRAINING.get(name, converter)
        read = fx_node.all_input_nodes
        if narrow.is_widened(name, {node: self.values[node] for node in read}, expected):
            with narrow.widened_operands(self._emitter, self.values, read):
                found = self._found(fx_node, name, converter, narrow.widened_stated(expected))
            found = narrow.narrowed(self._emitter, found, expected)
        else:
            found = self._found(fx_node, name, converter, expected)
        return self._checked(found, expected[0]) if is_tensor(stated) else found

    def _found(
        self,
        fx_node: Any,
        name: str,
        converter: converters.Converter | None,
        expected: Sequence[Stated | None],
    ) -> Any:
        """The value that a converter of ours makes of a node, or else TVM's."""
        if name.startswith("aten.as_strided"):
            _check_stands_in_a_row(fx_node.args[0].meta.get("val"))
        if converter is not None:
            node = Node(
                name,
                self._operands(fx_node),
                expected,
                _complex_operands(fx_node),
                is_cast_back=name == _CAST and _is_cast_back(fx_node),
                sole=_sole_operands(fx_node),
            )
            return converter(self._emitter, node)
        if name.partition(".")[0] not in ("aten", "_operator", "torchvision", "higher_order"):
            raise UnsupportedError(f"an operator that is not PyTorch's own; {_ADVICE}")
        convert = self._stock.convert_map.get(fx_node.target.__name__)
        if convert is None:
            raise UnsupportedError(f"this operator is not supported; {_ADVICE}")
        return convert(fx_node)

    def _follows_from_sizes(self, fx_node: Any) -> bool:
        """Whether a node reads no tensor of the user's, nor anything that was computed of one."""
        return all(
            node in self.known or node in self._of_sizes or not has_tensors(self.values[node])
            for node in fx_node.all_input_nodes
        )

    def _operands(self, fx_node: Any) -> dict[str, Any]:
        schema = getattr(fx_node.target, "_schema", None)
        if schema is None:
            return {str(at): self._value(value) for at, value in enumerate(fx_node.args)}
        operands = {argument.name: argument.default_value for argument in schema.arguments}
        return operands | {name: self._value(value) for name, value in _named(fx_node)}

    def _value(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._value(part) for part in value]
        if type(value).__name__ != "Node":
            return value
        if value not in self.values:
            self.values[value] = self._constant(self.known[value], value.name)
        return self.values[value]

    def _constant(self, value: Any, name: str) -> Any:
        """Makes constants of a weight, or of values that PyTorch has computed."""
        if isinstance(value, list | tuple):
            return [self._constant(part, name) for part in value]
        return self.weights.constant(value, name) if is_tensor(value) else value

    def _stated(self, tensor: Any) -> Stated:
        shape = tuple(size_of(size, self.variables) for size in tensor.shape)
        if is_complex(tensor):
            return Stated((*shape, 2), PARTS[str(tensor.dtype)])
        return Stated(shape, dtype_name(tensor.dtype))

    def _checked(self, value: Any, stated: Stated | None) -> Any:
        """The result, with the shape that PyTorch states where Relax does not find it to be that."""
        if stated is None or not isinstance(value, relax.Expr):
            return value
        value = value if isinstance(value, relax.Var) else self.builder.emit(value)
        kind = value.ty
        fits = isinstance(kind, relax.TensorType) and str(kind.dtype.dtype) == stated.dtype
        found = None if not fits or kind.shape is None else kind.shape.values
        rank = kind.ndim if found is None and fits else len(found or ())
        if not fits or rank not in (-1, len(stated.shape)) or _differ(found or (), stated.shape):
            raise UnsupportedError(
                f"imported as {_text(kind)}, which PyTorch states to be {stated}; {_ADVICE}"
            )
        if found is not None and all(map(same, map(simplified, found), stated.shape)):
            return value
        if found is not None:  # TVM would take an equation between shapes that it knows for a definition
            value = self.builder.match_cast(
                value, relax.TensorType(dtype=stated.dtype, ndim=len(stated.shape))
            )
        shape = [expression(dim) for dim in stated.shape]
        return self.builder.match_cast(value, relax.TensorType(shape, stated.dtype))


def _origin(fx_node: Any) -> Origin:
    """The module whose call a node is part of, else the node itself."""
    return Origin(module_path(fx_node.meta) or fx_node.name, operator_name(fx_node.target).split(".")[-2:][0])


def _has_complex(fx_node: Any) -> bool:
    """Whether a node reads or makes complex numbers."""
    return any(is_complex(node.meta.get("val")) for node in (fx_node, *fx_node.all_input_nodes))


def _complex_operands(fx_node: Any) -> frozenset[str]:
    """The names of a node's operands that are complex."""
    return frozenset(
        name for name, value in _named(fx_node) if is_complex(getattr(value, "meta", {}).get("val"))
    )


def _sole_operands(fx_node: Any) -> frozenset[str]:
    """The names of a node's operands that no other node reads."""
    return frozenset(
        name
        for name, value in _named(fx_node)
        if not any(_reads(user, value) for user in getattr(value, "users", ()) if user is not fx_node)
    )


def _reads(fx_node: Any, operand: Any) -> bool:
    """Whether numbers of an operand matter to a node; to a copy those that it replaces do not."""
    name = operator_name(fx_node.target)
    if name in _VIEWS:
        return any(_reads(user, fx_node) for user in fx_node.users)
    return name != _COPY or fx_node.args[0] is not operand


def _named(fx_node: Any) -> Iterable[tuple[str, Any]]:
    """A node's arguments with their names; none where its operator has no schema."""
    schema = getattr(fx_node.target, "_schema", None)
    if schema is None:
        return ()
    names = (argument.name for argument in schema.arguments)
    return {**dict(zip(names, fx_node.args, strict=False)), **fx_node.kwargs}.items()


def _check_stands_in_a_row(tensor: Any) -> None:
    """UnsupportedError for a tensor whose elements are not all of its memory, in order."""
    if not tensor.is_contiguous() or tensor.storage_offset():
        raise UnsupportedError("it reads memory by strides, and tensors have none here; use unfold or slices")


def _is_cast_back(fx_node: Any) -> bool:
    """Whether what a node gives is cast to another type behind it, with nothing but moves between."""
    pending, seen = list(fx_node.users), set()
    while pending:
        user = pending.pop()
        if user in seen or user.op != "call_function":
            continue
        seen.add(user)
        name = operator_name(user.target)
        if name == _CAST:
            return True
        if narrow.only_moves(name):
            pending += user.users
    return False


def _attribute(graph_module: Any, path: str) -> Any:
    return functools.reduce(getattr, path.split("."), graph_module)


def _differ(found: Sequence[tvm.ir.Expr], stated: Sequence[Any]) -> bool:
    """Whether two extents of an axis are numbers, and not the same one."""
    pairs = zip(map(simplified, found), stated, strict=False)
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def _text(kind: Any) -> str:
    if not isinstance(kind, relax.TensorType):
        return str(kind)
    dims = "?" if kind.shape is None else ", ".join(map(str, kind.shape.values))
    return f"{kind.dtype.dtype}[{dims}]"


def _last_line(error: Exception) -> str:
    kind, said = type(error).__name__, last_line(error)
    return kind if said == kind else f"{kind}: {said}"


_ASSERTION = "aten._assert_scalar.default"
_CAST = "aten._to_copy.default"
_COPY = "aten.copy.default"
_VIEWS = ("aten.select.int", "aten.slice.Tensor")
_ADVICE = "write the model without it, or compute that part outside"
