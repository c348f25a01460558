"""Functions of tensors held against PyTorch, all in one module: compiling takes longer than running."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import torch

import tvm_mxplan

OPTIONS = {"cache": "disabled"}
Results = dict[str, list[tuple[np.ndarray, np.ndarray]]]
"""PyTorch's results and those of a compiled function, by case."""


def results_of(cases: Mapping[str, tuple[Any, ...]], target: str = "") -> Results:
    """Results of cases, each a function of tensors and those."""

    class All(torch.nn.Module):
        def forward(self, inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
            leaves = torch.utils._pytree.tree_leaves
            return {name: leaves(cases[name][0](*given)) for name, given in inputs.items()}

    inputs = {name: list(given) for name, (_, *given) in cases.items()}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of variances of too few numbers
        program = torch.export.export(All(), (inputs,))
        expected = All()(inputs)
    executable = tvm_mxplan.compile(program, *filter(None, [target]), options=OPTIONS)
    given = [array_of(tensor) for tensor in torch.utils._pytree.tree_leaves(inputs)]
    found = iter([result.numpy() for result in executable(*given)])
    return {name: [(array_of(one), next(found)) for one in of] for name, of in expected.items()}


def array_of(tensor: Any) -> np.ndarray:
    """A tensor's numbers, of bfloat16 too."""
    tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()
