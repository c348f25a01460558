"""Kinds of steps that multiply an image by gates made of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SqueezeExcite:
    """src [N, C, ...], weights [M, C], bias? [M], gate_weights? [C, M], gate_bias? [C] -> dst of src's shape.

    A channel is multiplied by its gate, which a sample's means over its pixels give: the product of the means
    with ``weights`` and ``function`` behind it, and that of the result with ``gate_weights`` and ``gate``
    behind it.  Without gate_weights M is C, and ``gate`` is behind the only product.  Weights are constants.

    Attributes
    ----------
    function, gate : algorithms as in Eltwise, with their parameters; ``linear`` by 1 and 0 for none.
    """

    function: str
    function_alpha: float
    function_beta: float
    gate: str
    gate_alpha: float
    gate_beta: float
