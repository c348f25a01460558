"""Imports the nodes of an ONNX graph, one after the other, into a Relax function.

A node is tried in this order:

    fold          all operands known: evaluated now
    symbolic      shape arithmetic over named dimensions: evaluated to expressions
    converters    ours, where TVM's importer lacks an operator or errs
    stock         TVM's
    functions     an operator that ONNX defines by others, or that the model defines

so that what reaches Relax has shapes that are numbers or expressions, and nothing that only computes one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx
import tvm
from tvm import relax, tirx

from ...core.decisions.origin import Origin
from ...errors import InternalError, InvalidInputError, MxplanError, UnsupportedError
from ..origins import OriginBuilder
from ..reasons import is_own_mistake, reason_of
from . import auto_pad, converters, fold, functions, readers, stock
from .checks.check_numbers import check_numbers
from .contradictions import Contradiction, contradiction
from .converters.table import TABLE
from .dimensions import agree, reach, symbolic
from .dimensions.aligned import aligned
from .dimensions.dims import Dim
from .node import Emitter, Node, NotTaken
from .operators import as_standard
from .values import Scope, Value, has_shape, rank_of
from .way_out import LEAVE_OUT, open_dimensions_of, way_out
from .weights import array_of


@dataclass(frozen=True)
class Source:
    """A model: its name in messages, opsets, functions, the folder of its files, dimensions of its inputs."""

    name: str
    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str], onnx.FunctionProto]
    folder: Path | None = None
    inputs: Mapping[str, Sequence[Dim] | None] = field(default_factory=dict)


class Importer:
    """Imports graphs into the function that a builder has open."""

    def __init__(self, builder: OriginBuilder, source: Source) -> None:
        self.builder = builder
        self.source = source
        self._emitter = Emitter(self)
        self._dimensions = 0
        self._functions: Counter[str] = Counter()
        self._open: list[tuple[str, str]] = []  # operators whose functions are being imported
        self._opsets = (
            source.opsets
        )  # of the function that is being imported, if any: graphs inside have them

    def within(self, builder: OriginBuilder) -> Importer:
        """An importer into another function of the same module."""
        inner = Importer(builder, self.source)
        inner._functions = self._functions
        inner._opsets = self._opsets
        return inner

    def new_function_name(self, kind: str) -> str:
        """A name that no other function of the import has."""
        self._functions[kind] += 1
        return f"{kind}_{self._functions[kind] - 1}"

    def new_dimensions(self, count: int) -> list[Dim]:
        """As many named dimensions that nothing else has."""
        start = self._dimensions
        self._dimensions += count
        return [tirx.Var(f"dim_{index}", "int64") for index in range(start, self._dimensions)]

    def graph(self, graph: onnx.GraphProto, scope: Scope) -> list[Value]:
        """The graph's outputs; ``scope`` has its inputs, and what an enclosing graph defines."""
        scope = scope | {tensor.name: array_of(tensor, self.source.folder) for tensor in graph.initializer}
        self.nodes(graph.node, scope, self._opsets, [output.name for output in graph.output])
        return [
            self._stated(output, self._found(scope, output.name, "the graph's output"))
            for output in graph.output
        ]

    def _stated(self, output: onnx.ValueInfoProto, value: Value) -> Value:
        """A result with the shape that the model states for it, where that is known from nothing else."""
        if not isinstance(value, relax.Expr) or has_shape(value):
            return value
        dims = output.type.tensor_type.shape.dim
        if not output.type.tensor_type.HasField("shape") or not all(
            dim.HasField("dim_value") for dim in dims
        ):
            return value
        return self._emitter.with_shape(value, [dim.dim_value for dim in dims])

    def nodes(
        self,
        nodes: Sequence[onnx.NodeProto],
        scope: Scope,
        opsets: Mapping[str, int],
        results: Sequence[str],
    ) -> None:
        """Import nodes in their order; what they define joins ``scope``, from which ``results`` are read."""
        as_real = readers.cast_to_float(nodes, results)
        for proto in nodes:
            node = self._node(proto, scope, opsets, as_real=bool(as_real.intersection(proto.output)))
            try:
                with self.builder.importing(self._origin(node)):
                    made = [self._shaped(result) for result in self._results(node, scope)]
            except MxplanError:
                raise
            except (NotImplementedError, tvm.error.OpNotImplemented) as error:
                raise UnsupportedError(f"{self.called(node)}: {reason_of(error)}; {LEAVE_OUT}") from error
            except Exception as error:
                said = contradiction(node)
                if said:
                    raise Contradiction(
                        f"{self.called(node)}: its operands contradict each other ({said}); mend the "
                        "model, or state other shapes of its inputs"
                    ) from error
                if is_own_mistake(error):
                    raise InternalError(
                        f"{self.called(node)}: its converter fails ({type(error).__name__}: "
                        f"{reason_of(error)}); please report it, and {LEAVE_OUT}"
                    ) from error
                advice = self._fixing(node)
                if advice:
                    raise UnsupportedError(
                        f"{self.called(node)}: cannot be imported ({reason_of(error)}); {advice}"
                    ) from error
                raise InvalidInputError(
                    f"{self.called(node)}: cannot be imported ({reason_of(error)})"
                ) from error
            for name, result in zip(proto.output, made, strict=False):
                if name:
                    scope[name] = result

    def _origin(self, node: Node) -> Origin:
        """The node by its name, else by its first result where that is not inside of a function."""
        made = next((name for name in node.outputs if name), "")
        return Origin(node.name or ("" if self._open else made), node.op_type)

    def _node(self, proto: onnx.NodeProto, scope: Scope, opsets: Mapping[str, int], *, as_real: bool) -> Node:
        opset = opsets.get("" if proto.domain == "ai.onnx" else proto.domain, 1)
        if (proto.domain, proto.op_type) not in self.source.functions:
            proto, opset = as_standard(proto, opset)
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        inputs = [
            self._found(scope, name, f"node {proto.name or proto.op_type}") if name else None
            for name in proto.input
        ]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
        return Node(
            proto.op_type, domain, proto.name, inputs, attributes, list(proto.output), opset, proto, as_real
        )

    def _found(self, scope: Scope, name: str, reader: str) -> Value:
        if name not in scope:
            raise InvalidInputError(
                f"{self.source.name}: {reader} reads {name!r}, which nothing defines before it"
            )
        return scope[name]

    def _results(self, node: Node, scope: Scope) -> Sequence[Value]:
        check_numbers(node, self.called)
        node = aligned(self._emitter, node)
        for attempt in (fold.folded, symbolic.evaluated):
            found = attempt(node)
            if found is not None:
                return found
        node = self._agreed(node, scope)
        node = auto_pad.explicit(self._emitter, node, lambda padding: self._results(padding, scope)[0])
        reach.check(self._emitter, node)
        for converter in converters.of(node):
            try:
                result = (
                    converter(self._emitter, node)
                    if not converter.reads_scope
                    else converter(self._emitter, node, scope)
                )
            except NotTaken:
                continue
            return result if isinstance(result, tuple) else (result,)
        stated = (node.domain, node.op_type) in self.source.functions
        if not stated and stock.is_known(node.domain, node.op_type):
            return stock.converted(self._emitter, node)
        if stated and (node.domain, node.op_type) in self._open:
            raise UnsupportedError(f"{self.called(node)}: this function calls itself; expected one that ends")
        body = functions.body_of(node, self.source.functions)
        if body is None:
            raise self._refusal(node)
        captures = any(attribute.HasField("g") for attribute in node.proto.attribute)
        inner = scope | {"": None} if captures else Scope({"": None})  # a graph reads what stands around it
        inner |= dict(zip(body.inputs, node.inputs, strict=False))
        inner |= dict.fromkeys(body.inputs[len(node.inputs) :])
        self._open.append((node.domain, node.op_type))
        outside, self._opsets = self._opsets, {**self._opsets, **body.opsets}
        try:
            self.nodes(body.nodes, inner, body.opsets, body.outputs)
        finally:
            self._open.pop()
            self._opsets = outside
        # A function that depends on its node leaves out what computes results that nobody wants.
        wanted = [*(bool(name) for name in node.outputs), *[False] * len(body.outputs)]
        return [
            self._found(inner, name, f"function {node.op_type}") if needed else inner.get(name)
            for name, needed in zip(body.outputs, wanted, strict=False)
        ]

    def _refusal(self, node: Node) -> UnsupportedError:
        """The error of a node that nothing converts."""
        if (node.domain, node.op_type) not in TABLE:
            return UnsupportedError(f"{self.called(node)}: this operator is not supported; {LEAVE_OUT}")
        advice = self._fixing(node)
        if advice:
            names = ", ".join(open_dimensions_of(node.inputs))
            return UnsupportedError(f"{self.called(node)}: cannot be converted with {names} open; {advice}")
        return UnsupportedError(
            f"{self.called(node)}: cannot be converted with operands and attributes like these; {LEAVE_OUT}"
        )

    def _fixing(self, node: Node) -> str:
        """Describes how to make numbers of the dimensions that are open at a node; empty where none are."""
        return way_out(open_dimensions_of(node.inputs), self.source.inputs)

    def _agreed(self, node: Node, scope: Scope) -> Node:
        """The node with dimensions of its operands stated as equal that must be, for later readers too."""
        inputs = agree.agreed(self._emitter, node)
        if all(after is before for before, after in zip(node.inputs, inputs, strict=True)):
            return node
        for name, before, after in zip(node.proto.input, node.inputs, inputs, strict=False):
            if after is not before:
                scope[name] = after
        return replace(node, inputs=inputs)

    def _shaped(self, value: Value) -> Value:
        """The result with names for its dimensions where Relax knows none: what follows has shapes then."""
        if not isinstance(value, relax.Expr) or not isinstance(value.ty, relax.TensorType):
            return value
        rank = rank_of(value)
        if rank is None or has_shape(value):
            return value
        return self._emitter.with_shape(value, self.new_dimensions(rank))

    def called(self, node: Node) -> str:
        """A node as messages name it."""
        domain = f"{node.domain}." if node.domain else ""
        return self.text_of(node.name or node.outputs[0], f"{domain}{node.op_type}")

    def text_of(self, name: str, kind: str) -> str:
        """A node's name and operator as messages have them."""
        return f"{self.source.name}: node {name!r} ({kind})"
