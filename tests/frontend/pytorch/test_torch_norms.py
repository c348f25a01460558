"""Norms of channels: nodes written by hand as PyTorch has them, and modules where it is installed."""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

import tvm_mxplan
from tvm_mxplan.frontend.origins import OriginBuilder
from tvm_mxplan.frontend.torch import converters
from tvm_mxplan.frontend.torch.node import Emitter, Node, Stated

CHANNELS, PIXELS, EPSILON = 4, (6, 5), 1e-5
NORM, REPEAT, VIEW = "aten._native_batch_norm_legit.no_stats", "aten.repeat.default", "aten.view.default"
RNG = np.random.default_rng(7)
WEIGHT, BIAS = (RNG.standard_normal(CHANNELS).astype("float32") for _ in range(2))
TOLERANCE = 4e-6
"""A few roundings of float32, of numbers about 10."""
needs_torch = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="torch is not installed")


def instance_norm(batch: Any) -> tvm.IRModule:
    """Instances seen as one batch of all channels, with the factors repeated, as PyTorch has it."""
    builder = OriginBuilder()
    x = relax.Var("x", relax.TensorType([batch, CHANNELS, *PIXELS], "float32"))
    both = batch * CHANNELS
    with builder.function("main", [x]):
        with builder.dataflow():
            emitter = Emitter(builder)

            def repeated(factor: np.ndarray) -> relax.Expr:
                operands = {"self": relax.const(factor), "repeats": [batch]}
                stated = [Stated((both,), "float32")]
                return converters.TABLE[REPEAT](emitter, Node(REPEAT, operands, stated))

            operands = {
                "input": emitter.reshaped(x, [1, both, *PIXELS]),
                "weight": repeated(WEIGHT),
                "bias": repeated(BIAS),
                "training": True,
                "momentum": 0.1,
                "eps": EPSILON,
            }
            stated = [Stated((1, both, *PIXELS), "float32"), None, None]
            found, *rest = converters.TABLE[NORM](emitter, Node(NORM, operands, stated))
            assert rest == [None, None]
            y = builder.emit_output(emitter.reshaped(found, [batch, CHANNELS, *PIXELS]))
        builder.emit_func_output(y)
    return builder.get()


def normal(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    x = x.astype("float64")
    found = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPSILON)
    return found * WEIGHT[:, None, None] + BIAS[:, None, None]


@pytest.mark.parametrize("batch", [3, tirx.Var("n", "int64")], ids=str)
def test_a_view_of_instances_is_undone(batch: Any) -> None:
    mod = instance_norm(batch)
    norms = [
        call
        for call in relax.analysis.get_var2val(mod["main"]).values()
        if isinstance(call, relax.Call) and call.op.name == "relax.nn.instance_norm"
    ]
    assert [[int(axis) for axis in call.attrs.axes] for call in norms] == [[2, 3]]
    assert int(norms[0].args[0].ty.shape.values[1]) == CHANNELS
    executable = tvm_mxplan.compile(mod)
    assert len(executable.report.regions) == 1 and not executable.report.kept
    for count in [batch] if isinstance(batch, int) else [1, 5]:
        x = (RNG.standard_normal((count, CHANNELS, *PIXELS)) * 3 + 5).astype("float32")
        np.testing.assert_allclose(executable(x)[0].numpy(), normal(x, (2, 3)), rtol=0, atol=TOLERANCE)


def test_axes_of_one_element_do_not_matter() -> None:
    """The operator as TVM's own importer writes it."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, CHANNELS, *PIXELS), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            factors = [relax.const(one) for one in (WEIGHT, BIAS)]
            norm = relax.op.nn.instance_norm(x, *factors, channel_axis=1, axes=[0, 2, 3], epsilon=EPSILON)
            y = builder.emit_output(norm)
        builder.emit_func_output(y)
    executable = tvm_mxplan.compile(builder.get())
    assert len(executable.report.regions) == 1 and not executable.report.kept
    data = RNG.standard_normal((1, CHANNELS, *PIXELS)).astype("float32")
    np.testing.assert_allclose(executable(data)[0].numpy(), normal(data, (2, 3)), rtol=0, atol=TOLERANCE)


def modules() -> dict[str, tuple[Any, tuple[int, ...]]]:
    from torch import nn

    whole = {"track_running_stats": False}
    return {
        "instances": (nn.InstanceNorm2d(4, affine=True), (3, 4, 8, 8)),
        "instances without factors": (nn.InstanceNorm2d(4), (3, 4, 8, 8)),
        "kept statistics of instances": (
            nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
            (3, 4, 8, 8),
        ),
        "instances of volumes": (nn.InstanceNorm3d(4, affine=True), (2, 4, 5, 6, 7)),
        "one instance of rows": (nn.InstanceNorm1d(4), (1, 4, 9)),
        "a batch": (nn.BatchNorm2d(4, **whole), (3, 4, 6, 5)),
        "a batch without factors": (nn.BatchNorm2d(4, affine=False, **whole), (3, 4, 6, 5)),
        "a batch of rows": (nn.BatchNorm1d(4, **whole), (3, 4)),
        "a batch of volumes": (nn.BatchNorm3d(4, **whole), (3, 4, 2, 3, 5)),
    }


MODULES = list(modules()) if importlib.util.find_spec("torch") else []


@needs_torch
@pytest.mark.parametrize("named", [False, True], ids=["fixed batch", "named batch"])
@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str, named: bool) -> None:
    import torch

    module, shape = modules()[name]
    module.eval()
    torch.manual_seed(3)
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            tensor.data = torch.rand_like(tensor) + 0.5
    wide = copy.deepcopy(module).double()
    count = max(shape[0], 2)  # PyTorch takes a batch of one for a fixed one
    example = torch.randn(count if named else shape[0], *shape[1:]) * 3 + 5
    dims = ({0: torch.export.Dim("n", min=1)},) if named else None
    executable = tvm_mxplan.compile(torch.export.export(module, (example,), dynamic_shapes=dims))
    assert len(executable.report.regions) == 1 and not executable.report.kept, str(executable.report)
    for given in (example, torch.randn(7, *shape[1:])) if named else (example,):
        with torch.no_grad():
            wanted = wide(given.double()).numpy()
        np.testing.assert_allclose(executable(given.numpy())[0].numpy(), wanted, rtol=0, atol=TOLERANCE)
