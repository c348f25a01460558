"""Our own converters, where TVM's importer lacks an operator or errs: a table by domain and operator.

A converter takes an ``Emitter`` and a ``Node`` and returns a value, or a tuple of them; it raises
``NotTaken`` to leave the node to the next in line.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..node import Node
from .table import TABLE, Converter


def of(node: Node) -> Iterator[Converter]:
    """The converters for a node, in the order in which they are tried."""
    for converter in TABLE.get((node.domain, node.op_type), ()):
        if converter.first_opset <= node.opset:
            yield converter


from . import (  # noqa: E402 (they join the table)
    casts,  # noqa: F401
    dynamic,  # noqa: F401
    elementwise,  # noqa: F401
    onnxruntime,  # noqa: F401
    padding,  # noqa: F401
    quantized,  # noqa: F401
    scaled,  # noqa: F401
    shapes,  # noqa: F401
    signal,  # noqa: F401
    sums,  # noqa: F401
    training,  # noqa: F401
)
from .arithmetic import activations, powers, products  # noqa: E402, F401
from .axes import cumulative, groups, joins, neighbours, normalization, reductions  # noqa: E402, F401
from .flow import control, sequences  # noqa: E402, F401
from .images import columns, deformable, detection, grids, regions, resize, windows  # noqa: E402, F401
from .recurrent import layers  # noqa: E402, F401
from .selection import parts, places  # noqa: E402, F401
