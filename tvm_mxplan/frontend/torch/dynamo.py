"""``torch.compile(model, backend="mxplan")``: PyTorch cuts a model into graphs, each is compiled and called.

    torch.compile      calls ``mxplan`` with a graph, once for each set of its guards
    AOTAutograd        leaves pure ATen operators; what is written to inputs becomes a result that it copies
    CompiledGraph      imports and compiles that when it is first called, with the weights as constants

Weights are not copied: constants stand where PyTorch has them.  A graph that is called with other weights, or
with weights that were written to, is compiled for these.  Where no gradient may be asked for only: a graph
whose inputs require one runs as PyTorch runs it, as does one that cannot be compiled; a warning says why.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm_mxplan

from ...errors import InvalidInputError
from ...execution.executable import Executable
from ...options import Options
from ...targets import DEFAULT, TargetText
from .compiled_graph import CompiledGraph
from .export import decomposition_table

if TYPE_CHECKING:
    import tvm

_graphs: weakref.WeakSet[CompiledGraph] = weakref.WeakSet()
_TARGET = DEFAULT


def mxplan(
    graph_module: Any,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """A graph of PyTorch's as a function of its inputs: the backend ``mxplan`` of ``torch.compile``.

    Parameters
    ----------
    options : ``target`` as for :func:`tvm_mxplan.compile`, and the fields of :class:`tvm_mxplan.Options`.

    Raises
    ------
    InvalidInputError : an option that does not exist, or a mode, of which there is none.
    """
    import torch
    from torch._dynamo.backends.common import aot_autograd

    if mode not in (None, "default"):
        raise InvalidInputError(f"mode={mode!r}: backend 'mxplan' has options instead of modes")
    given = dict(options or {})
    target = given.pop("target", _TARGET)
    TargetText.of(target)  # says at once what is wrong with it
    settings = Options.of(given)
    if torch.is_grad_enabled() and any(getattr(value, "requires_grad", False) for value in example_inputs):
        warn_once("its inputs or weights require gradients; call it under torch.no_grad()")
        return graph_module.forward

    def build(mod: tvm.IRModule) -> Executable:
        return tvm_mxplan.compile(mod, target, options=settings)

    def compiled(module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        graph = CompiledGraph(module, static_inputs(len(inputs)), build, warn_once)
        _graphs.add(graph)

        def boxed(args: list[Any]) -> Any:
            given = list(args)
            args.clear()  # their memory can go as soon as nothing reads it
            return graph(given)

        boxed._boxed_call = True  # type: ignore[attr-defined]
        return boxed

    backend = aot_autograd(fw_compiler=compiled, decompositions=decomposition_table())
    return backend(graph_module, example_inputs)


def executables() -> list[Executable]:
    """Lists the executables that were compiled for ``torch.compile`` and are in use, with reports."""
    return [executable for graph in list(_graphs) for executable in graph.executables()]


def static_inputs(count: int) -> set[int]:
    """Returns the indices of those inputs of the graph being compiled that are weights and buffers."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    indices = getattr(metadata, "static_input_indices", None) or ()
    return {index for index in indices if index < count}


_said: set[str] = set()


def warn_once(reason: str) -> None:
    """Warn that a graph runs as PyTorch runs it, once for each reason."""
    if reason not in _said:
        _said.add(reason)
        warnings.warn(f"tvm_mxplan: a graph runs in PyTorch, not compiled: {reason}", stacklevel=2)
