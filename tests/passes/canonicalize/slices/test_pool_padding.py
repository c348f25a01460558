"""Max pools of images with their edges repeated; what is padded otherwise stays."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from dataflow_text import operators
from relax_programs import normal, result_of
from tvm import relax

from tvm_mxplan.passes.canonicalize import SimplifyInference


def pooled(x: np.ndarray, reads: dict[int, list[int]], kernel: int, **settings: object) -> tvm.IRModule:
    """A pool of x, read along axes by places."""
    builder = relax.BlockBuilder()
    given = relax.Var("x", relax.TensorType(x.shape, "float32"))
    pool = {3: relax.op.nn.max_pool1d, 4: relax.op.nn.max_pool2d, 5: relax.op.nn.max_pool3d}[x.ndim]
    with builder.function("main", [given]):
        with builder.dataflow():
            y: relax.Expr = given
            for axis, places in reads.items():
                y = builder.emit(relax.op.take(y, relax.const(places, "int64"), axis))
            sizes = {"pool_size": (kernel,) * (x.ndim - 2), "strides": (2,) * (x.ndim - 2)}
            y = builder.emit_output(pool(y, **{**sizes, **settings}))
        builder.emit_func_output(y)
    return builder.get()


EDGES = [
    ((2, 3, 7), {2: [0, 0, 1, 2, 3, 4, 5, 6]}, 3, {}),
    ((2, 3, 5, 4), {3: [0, 1, 2, 3, 3], 2: [0, 1, 2, 3, 4, 4]}, 3, {}),
    ((2, 3, 5, 4), {3: [0, 0, 0, 1, 2, 3, 3]}, 3, {}),
    ((2, 3, 5, 4), {3: [0, 1, 2, 3, 3]}, 3, {"padding": (1, 0)}),
    ((2, 5, 4, 3), {2: [0, 0, 1, 2, 3]}, 2, {"layout": "NHWC"}),
    ((1, 2, 4, 3, 5), {2: [0, 1, 2, 3, 3], 3: [0, 0, 1, 2], 4: [0, 0, 1, 2, 3, 4, 4]}, 3, {}),
    ((2, 3, 5, 1), {3: [0, 0, 0]}, 3, {}),
]


@pytest.mark.parametrize("shape, reads, kernel, settings", EDGES)
def test_edges_that_are_repeated(shape, reads, kernel, settings) -> None:
    x = -np.abs(normal(7, *shape)) - 1  # zeros would be larger
    mod = pooled(x, reads, kernel, **settings)
    found = SimplifyInference()(mod)
    assert [one.name for one in operators(found)] == [f"relax.nn.max_pool{len(shape) - 2}d"]
    np.testing.assert_array_equal(result_of(found, x), result_of(mod, x))


@pytest.mark.parametrize(
    "reads, kernel, settings",
    [
        ({3: [0, 0, 0, 0, 1, 2, 3]}, 3, {}),
        ({3: [1, 0, 1, 2, 3]}, 3, {}),
        ({3: [0, 0, 1, 2, 2]}, 3, {}),
        ({1: [0, 0, 1, 2]}, 3, {}),
        ({3: [0, 0, 1, 2, 3]}, 3, {"ceil_mode": True}),
        ({3: [0, 0, 1, 2, 3]}, 2, {"dilation": (2, 2)}),
        ({3: [0, 0, 1, 2, 3]}, 3, {"padding": (0, 2)}),
    ],
    ids=["beyond a window", "mirrored", "no end", "channels", "ceil", "dilation", "with padding of its own"],
)
def test_what_is_padded_otherwise_stays(reads, kernel, settings) -> None:
    x = normal(8, 2, 3, 5, 4)
    found = SimplifyInference()(pooled(x, reads, kernel, **settings))
    assert [one.name for one in operators(found)] == ["relax.take", "relax.nn.max_pool2d"]
