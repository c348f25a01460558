"""Refuses what is wrong with an ONNX graph before anything is imported, by file, node and operator.

    model.onnx: node 'conv1' (Conv): reads 'w', which nothing makes; expected ... of that name

The graph as text comes first: names, order, operators, attributes (``onnx.checker``, node by node, so that no
weights are copied).  Then the weights (``check_tensors``), then shapes (``check_shapes``).  Each check looks
at each node once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....errors import InvalidInputError, UnsupportedError
from ...stated_inputs import Shape
from ..names import describe, first_line, shown, standard, with_standard_domain
from ..operators import knows
from . import check_shapes, check_tensors

if TYPE_CHECKING:
    import onnx

_OF_ONNXRUNTIME = ("com.microsoft", "com.ms.internal")
"""Beginnings of the domains of operators that onnxruntime defines."""
_OLDEST_IR = 3
_DEEPEST = 16
"""Branches inside of branches; real models have three or four."""


def check_model(
    model: onnx.ModelProto, source: str, shapes: Mapping[str, Shape], *, files_checked: bool = False
) -> None:
    """Say what is wrong with ``model``; onnx's own message is quoted where it is the best.

    Parameters
    ----------
    source : what messages call the model.
    shapes : shapes of inputs by name, in place of those in the model.
    files_checked : data that stands in other files has been looked at (``check_tensors.check_files``).

    Raises
    ------
    InvalidInputError : the model contradicts itself, or no version of ONNX knows what it says.
    UnsupportedError : an operator or a form that TVM's importer does not know.
    """
    _check_versions(model, source)
    _GraphCheck(model, source).check(model.graph, [], 0)
    check_tensors.check_initializers(model.graph, source, files_checked)
    check_shapes.check_shapes(model, source, shapes)


def _check_versions(model: onnx.ModelProto, source: str) -> None:
    import onnx

    if not model.graph.node or not model.opset_import:
        raise InvalidInputError(f"{source}: not an ONNX model or truncated (no operators or no opset)")
    if not _OLDEST_IR <= model.ir_version <= onnx.IR_VERSION:
        raise InvalidInputError(
            f"{source}: IR version {model.ir_version}; expected {_OLDEST_IR} to {onnx.IR_VERSION}, "
            f"which onnx {onnx.__version__} knows; export the model again or install another onnx"
        )
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if not standard(opset.domain) and not 1 <= opset.version <= newest:
            raise InvalidInputError(
                f"{source}: opset {opset.version}; expected 1 to {newest}, which onnx {onnx.__version__} "
                "knows; export the model for one of them or install another onnx"
            )


@dataclass
class _Scope:
    """Values of one graph: those known so far, and the node that makes each of its others."""

    known: set[str] = field(default_factory=set)
    producers: dict[str, int] = field(default_factory=dict)


class _GraphCheck:
    """Names, order, operators and attributes of a graph and of the graphs inside it."""

    def __init__(self, model: onnx.ModelProto, source: str) -> None:
        import onnx

        self.source = source
        self.functions = {(function.domain, function.name) for function in model.functions}
        self.context = onnx.checker.C.CheckerContext()
        self.context.ir_version = model.ir_version
        opsets = {standard(opset.domain): opset.version for opset in model.opset_import}
        self.context.opset_imports = opsets
        self.opset = opsets.get("", 1)

    def check(self, graph: onnx.GraphProto, outside: list[_Scope], depth: int) -> None:
        """Check ``graph``, which sees the values of ``outside``."""
        if depth > _DEEPEST:
            raise InvalidInputError(
                f"{self.source}: graph {shown(graph.name)} stands inside of {depth} others; "
                f"expected at most {_DEEPEST}"
            )
        scope = self._declared(graph, outermost=not depth)
        for at, node in enumerate(graph.node):
            for name in filter(None, node.output):
                if name in scope.producers or name in scope.known:
                    self._two_producers(graph, scope, at, name)
                scope.producers[name] = at
        scopes = [*outside, scope]
        for at, node in enumerate(graph.node):
            self._check_operator(node, at)
            for name in filter(None, node.input):
                if not any(name in one.known for one in scopes):
                    self._unknown_value(graph, scope, at, name)
            self._check_attributes(node, at)
            for inner in _graphs(node):
                self.check(inner, scopes, depth + 1)
            scope.known.update(filter(None, node.output))
        if not graph.output:
            raise InvalidInputError(
                f"{self.source}: graph {shown(graph.name)} has no outputs; expected one or more"
            )
        for value in graph.output:
            if not any(value.name in one.known for one in scopes):
                raise InvalidInputError(
                    f"{self.source}: output {shown(value.name)}: nothing makes it; "
                    "expected a result of a node, an input or an initializer"
                )

    def _declared(self, graph: onnx.GraphProto, *, outermost: bool) -> _Scope:
        """Inputs and initializers, none of which stands twice."""
        scope = _Scope()
        for kind, values in (("input", graph.input), ("initializer", graph.initializer)):
            names: set[str] = set()
            for at, value in enumerate(values):
                if not value.name:
                    raise InvalidInputError(f"{self.source}: {kind} #{at} has no name; expected one")
                if value.name in names:
                    raise InvalidInputError(
                        f"{self.source}: {kind} {shown(value.name)} is declared twice; "
                        "give each a name of its own"
                    )
                names.add(value.name)
            scope.known |= names
        if graph.sparse_initializer:
            name = graph.sparse_initializer[0].values.name
            raise UnsupportedError(
                f"{self.source}: initializer {shown(name)} is sparse, which TVM's importer does not read; "
                "store it dense"
            )
        for value in graph.input if outermost else ():
            if not value.type.WhichOneof("value"):
                raise InvalidInputError(
                    f"{self.source}: input {shown(value.name)} has no type; expected a tensor's"
                )
        return scope

    def _check_operator(self, node: onnx.NodeProto, at: int) -> None:
        domain = standard(node.domain)
        if (node.domain, node.op_type) in self.functions or knows(domain, node.op_type, self.opset):
            return
        what = f"{self.source}: {describe(node, at)}"
        if domain and not domain.startswith(_OF_ONNXRUNTIME):
            raise UnsupportedError(
                f"{what}: nobody here knows the operators of domain {shown(node.domain)}; "
                "expected those of ai.onnx; export the model without this one"
            )
        if domain:
            raise UnsupportedError(
                f"{what}: this operator of onnxruntime's own is not supported; its optimiser makes such ones "
                "for itself: give the model as it was before onnxruntime optimised it"
            )
        raise UnsupportedError(
            f"{what}: this operator is not supported; export the model with other ones "
            "(a simplifier such as onnxsim may remove it)"
        )

    def _check_attributes(self, node: onnx.NodeProto, at: int) -> None:
        import onnx

        names = [attribute.name for attribute in node.attribute]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidInputError(
                f"{self.source}: {describe(node, at)}: attribute {shown(twice[0])} is given twice; "
                "expected it once"
            )
        # The checker would not find the names that inner graphs take from outside; those are checked here.
        if standard(node.domain) or any(_graphs(node)):
            return
        if self._is_deprecated(node) or self._is_unknown(node):
            return  # the checker refuses those, and does not look at them
        if node.domain:
            node = with_standard_domain(node)
        try:
            onnx.checker.check_node(node, self.context)
        except onnx.checker.ValidationError as error:
            raise InvalidInputError(
                f"{self.source}: {describe(node, at)}: {first_line(error)}; "
                f"expected what opset {self.opset} says of {node.op_type}"
            ) from error

    def _is_deprecated(self, node: onnx.NodeProto) -> bool:
        import onnx

        try:
            return bool(onnx.defs.get_schema(node.op_type, self.opset).deprecated)
        except onnx.defs.SchemaError:
            return False

    def _is_unknown(self, node: onnx.NodeProto) -> bool:
        """Whether a converter takes an operator of the standard domain that no version of ONNX has."""
        import onnx

        return not onnx.defs.has(node.op_type) and knows("", node.op_type, self.opset)

    def _two_producers(self, graph: onnx.GraphProto, scope: _Scope, at: int, name: str) -> None:
        first = scope.producers.get(name)
        other = "is an input or an initializer"
        if first is not None:
            other = f"{describe(graph.node[first], first)} makes"
        raise InvalidInputError(
            f"{self.source}: {describe(graph.node[at], at)}: makes {shown(name)}, which {other} as well; "
            "give each result a name of its own"
        )

    def _unknown_value(self, graph: onnx.GraphProto, scope: _Scope, at: int, name: str) -> None:
        what = f"{self.source}: {describe(graph.node[at], at)}: reads {shown(name)}"
        producer = scope.producers.get(name)
        if producer is None:
            raise InvalidInputError(
                f"{what}, which nothing makes; expected a node, an input or an initializer of that name"
            )
        maker = describe(graph.node[producer], producer)
        if _depends(graph, scope.producers, producer, at):
            raise InvalidInputError(
                f"{what}, which {maker} makes of this node's own result; expected a graph without cycles"
            )
        raise InvalidInputError(
            f"{what}, which {maker} makes only later; expected every node behind those that it reads from: "
            "sort the nodes"
        )


def _depends(graph: onnx.GraphProto, producers: Mapping[str, int], node: int, on: int) -> bool:
    """True if ``node`` reads, directly or through others, what the node ``on`` makes."""
    seen, todo = {node}, [node]
    while todo:
        at = todo.pop()
        if at == on:
            return True
        for before in _read_by(graph.node[at], producers):
            if before not in seen:
                seen.add(before)
                todo.append(before)
    return False


def _read_by(node: onnx.NodeProto, producers: Mapping[str, int]) -> Collection[int]:
    return [producers[name] for name in node.input if name in producers]


def _graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs inside a node: branches, say."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
