"""Batch norms and dropouts of a program: which ones train, and which ones are frozen.

A program is exported in training mode or for inference, and both give one step: where all batch norms stand
as in inference, all train.  Where some train, the program is in training mode, and the others have been
frozen by ``eval()``.  Dropouts likewise; one that drops also shows that the program is in training mode.

Those that train are written as in inference, by running statistics, for ``forward.py`` to turn them into
those of training.  A frozen one reads its statistics behind a stopped gradient: they are constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import UnsupportedError
from ...frontend.torch.names import module_path, operator_name
from .stops import stop_gradient

_BATCH_NORM = "aten.batch_norm.default"
_DROPOUTS = tuple(
    f"aten.{name}.default"
    for kind in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
    for name in (kind, f"{kind}_")
)
_ALPHA_DROPOUTS = tuple(name for name in _DROPOUTS if "alpha" in name)
_INSTANCE_NORM = "aten.instance_norm.default"


def with_modes(graph_module: Any) -> None:
    """Gives each batch norm and dropout of a graph, and of those inside of it, its mode."""
    calls = list(_calls(graph_module))
    norms = [node for node, name in calls if name == _BATCH_NORM and node.args[3] is not None]
    dropouts = [node for node, name in calls if name in _DROPOUTS]
    trains = any(node.args[5] for node in norms)
    if not trains and not any(node.args[2] for node in dropouts):
        for node in dropouts:
            node.args = (*node.args[:2], True)
    for node, name in calls:
        _check(node, name)
    for node in norms:
        if trains and not node.args[5]:
            _freeze(node)
        elif not trains and node.args[6] == 0:
            raise UnsupportedError(
                f"{_called(node)}: its momentum is None or 0, which a program exported for inference "
                "does not tell apart; set a momentum, as BatchNorm2d.momentum = 0.1"
            )
        node.args = (*node.args[:5], False, *node.args[6:])
    for module in _modules(graph_module):
        module.recompile()


def _check(node: Any, name: str) -> None:
    """UnsupportedError for what a step would compute otherwise than PyTorch does."""
    if name in _ALPHA_DROPOUTS and node.args[2]:
        raise UnsupportedError(
            f"{_called(node)}: an alpha dropout cannot be trained yet; use nn.Dropout, or leave it out"
        )
    if name == _INSTANCE_NORM and node.args[3] is not None:
        raise UnsupportedError(
            f"{_called(node)}: running statistics of instance norms are not kept in training; make the "
            "layer with track_running_stats=False"
        )


def _called(node: Any) -> str:
    where = module_path(node.meta)
    return f"exported program: {operator_name(node.target)}{f' in {where}' if where else ''}"


def _freeze(node: Any) -> None:
    statistics = []
    for operand in node.args[3:5]:
        with node.graph.inserting_before(node):
            statistics.append(node.graph.call_function(stop_gradient(), (operand,)))
        statistics[-1].meta = dict(operand.meta)
    node.args = (*node.args[:3], *statistics, *node.args[5:])


def _modules(graph_module: Any) -> Iterator[Any]:
    yield from (module for module in graph_module.modules() if hasattr(module, "graph"))


def _calls(graph_module: Any) -> Iterator[tuple[Any, str]]:
    for module in _modules(graph_module):
        for node in module.graph.nodes:
            if node.op == "call_function":
                yield node, operator_name(node.target)
