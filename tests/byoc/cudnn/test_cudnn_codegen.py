"""Composites as programs and operation graphs: worked out as the graphs say, against TVM's own kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
from cudnn_stand_in import DEVICES, StandIn
from graph_interpreter import run_program
from tvm import relax

from tvm_mxplan.byoc.backend import DeviceChoice
from tvm_mxplan.byoc.cudnn.backend import Cudnn
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts
from tvm_mxplan.passes.region import PartitionRegions

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "passes"))

from relax_programs import TARGET, normal, parse, run

IMAGE, RESULT = (2, 6, 7, 9), (2, 8, 7, 9)
FILTERS, CHANNELS = (8, 6, 3, 3), (1, 8, 1, 1)
CONV = "a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])"
CASES: dict[str, tuple[list[str], dict[str, tuple[int, ...]], tuple[str, ...]]] = {
    # lines, shapes of what they name (x and z are inputs, all else is constant), post-ops
    "convolution": ([CONV], {"x": IMAGE, "w": FILTERS}, ()),
    "strides, dilation": (
        ["a = R.nn.conv2d(x, w, strides=[2, 1], padding=[2, 1, 2, 1], dilation=[1, 2])"],
        {"x": IMAGE, "w": FILTERS},
        (),
    ),
    "groups": (
        ["a = R.nn.conv2d(x, w, groups=2, padding=[1, 1, 1, 1])", "b = R.nn.relu(a)"],
        {"x": IMAGE, "w": (8, 3, 3, 3)},
        ("relu",),
    ),
    "depthwise": (
        ["a = R.nn.conv2d(x, w, groups=6, padding=[1, 1, 1, 1])"],
        {"x": IMAGE, "w": (12, 1, 3, 3)},
        (),
    ),
    "bias": ([CONV, "b = R.add(v, a)"], {"x": IMAGE, "w": FILTERS, "v": CHANNELS}, ()),
    "tanh": ([CONV, "b = R.tanh(a)"], {"x": IMAGE, "w": FILTERS}, ("tanh",)),
    "residual": ([CONV, "b = R.add(z, a)"], {"x": IMAGE, "w": FILTERS, "z": RESULT}, ("add",)),
    "batch norm, residual, relu": (
        [
            CONV,
            "b = R.subtract(a, u)",
            "c = R.multiply(s, b)",
            "d = R.add(c, v)",
            "e = R.add(d, z)",
            "f = R.nn.relu(e)",
        ],
        {"x": IMAGE, "w": FILTERS, "u": CHANNELS, "s": (8, 1, 1), "v": CHANNELS, "z": RESULT},
        ("add", "relu"),
    ),
    "scale, sigmoid": (
        [CONV, "b = R.multiply(a, s)", "c = R.sigmoid(b)"],
        {"x": IMAGE, "w": FILTERS, "s": CHANNELS},
        ("logistic",),
    ),
    "product": (["a = R.matmul(x, w)"], {"x": (3, 5, 7), "w": (7, 11)}, ()),
    "product, transposed, bias, relu": (
        ["t = R.permute_dims(w)", "a = R.matmul(x, t)", "b = R.add(a, v)", "c = R.nn.relu(b)"],
        {"x": (5, 7), "w": (11, 7), "v": (11,)},
        ("relu",),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_composite_computes_what_its_operators_do(planner: StandIn, case: str) -> None:
    lines, shapes, post_ops = CASES[case]
    arrays = {name: normal(at, *shape) for at, (name, shape) in enumerate(shapes.items())}
    parameters = ", ".join(f'{name}: R.Tensor({shape}, "float32")' for name, shape in shapes.items())
    plain = parse("\n".join([*lines, f"return {lines[-1][0]}"]), parameters)
    constant = {name: array for name, array in arrays.items() if name not in ("x", "z")}
    bound = relax.transform.BindParams("main", constant)(plain)
    backend = Cudnn().for_device(DeviceChoice(str(DEVICES / "h200.json"), "", False, False)).backend
    passes = [
        relax.transform.ConvertToDataflow(1),
        DispatchOperators(preference_of([backend])),
        PartitionRegions(),
    ]
    mod = tvm.transform.Sequential(passes)(bound)
    (region,) = [f for f in mod.functions.values() if f.attrs and "Codegen" in f.attrs]
    program, constants, _ = backend.translate(region, "r")
    (step,) = program.steps
    assert isinstance(step.attrs, ir.Convolution)
    assert tuple(one.algorithm for one in step.post_ops) == post_ops  # type: ignore[union-attr]
    laid_out = infer_layouts(program, backend).program
    given = [arrays[program.values[number].name] for number in program.of_kind("input")]
    (result,) = run_program(laid_out, constants, given)
    (right,) = run(relax.VirtualMachine(tvm.compile(bound, TARGET), tvm.cpu()), *given)
    np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4)


REFUSED = {
    # lines, shapes, words of the reason
    "padding that differs": (
        ["a = R.nn.conv2d(x, w, padding=[1, 0, 0, 1])"],
        {"x": IMAGE, "w": FILTERS},
        "differs at begin and end",
    ),
    "filters that vary": ([CONV.replace("w", "z")], {"x": IMAGE, "z": FILTERS}, "not constant"),
    "integers": ([CONV], {"x": IMAGE, "w": FILTERS}, "element type int32"),
    "a product of two inputs": (["a = R.matmul(x, z)"], {"x": (4, 5), "z": (5, 6)}, "no constant matrix"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_has_a_reason(planner: StandIn, case: str) -> None:
    lines, shapes, words = REFUSED[case]
    dtype = "int32" if case == "integers" else "float32"
    parameters = ", ".join(f'{name}: R.Tensor({shape}, "{dtype}")' for name, shape in shapes.items())
    plain = parse("\n".join([*lines, "return a"]), parameters)
    arrays = {name: normal(1, *shape).astype(dtype) for name, shape in shapes.items() if name == "w"}
    bound = relax.transform.BindParams("main", arrays)(plain)
    told: list[str] = []
    patterns = Cudnn().patterns(lambda operator, reason: told.append(f"{operator}: {reason}"))
    found = relax.transform.FuseOpsByPattern(patterns, bind_constants=True)(
        relax.transform.ConvertToDataflow(1)(bound)
    )
    assert not [f for f in found.functions.values() if f.attrs and "Composite" in f.attrs]
    assert any(words in one for one in told), told
