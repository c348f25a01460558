"""Functions of Relax as programs of cuDNN: worked out as operation graphs say, against TVM's kernels."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tvm
from cudnn_stand_in import DEVICES
from graph_interpreter import run_program
from tvm import relax

from tvm_mxplan.byoc.backend import Backend, DeviceChoice
from tvm_mxplan.byoc.cudnn.backend import Cudnn
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.dispatch import DispatchOperators
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.layout.infer_layouts import infer_layouts
from tvm_mxplan.passes.region import PartitionRegions

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "passes"))

from relax_programs import TARGET, normal, parse, run


def on_h200(tf32: bool = False) -> Backend:
    """cuDNN for a device that need not be here."""
    return Cudnn().for_device(DeviceChoice(str(DEVICES / "h200.json"), "", tf32, False)).backend


def checked_against_tvm(
    lines: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    canonical: Sequence[tvm.transform.Pass] = (),
    tf32: bool = False,
) -> tuple[ir.Step, ...]:
    """The steps, conversions of layouts left out, of the one region that a function becomes.

    Parameters
    ----------
    lines : the function's bindings.
    shapes : of what they name; x and z are inputs, all else is constant.
    canonical : passes that run before dispatch.
    tf32 : the option, which says how two tensors are multiplied.
    """
    arrays = {name: normal(at, *shape) for at, (name, shape) in enumerate(shapes.items())}
    parameters = ", ".join(f'{name}: R.Tensor({shape}, "float32")' for name, shape in shapes.items())
    plain = parse("\n".join([*lines, f"return {lines[-1][0]}"]), parameters)
    constant = {name: array for name, array in arrays.items() if name not in ("x", "z")}
    return checked_module(relax.transform.BindParams("main", constant)(plain), arrays, canonical, tf32)


def checked_module(
    bound: tvm.IRModule,
    arrays: Mapping[str, np.ndarray],
    canonical: Sequence[tvm.transform.Pass] = (),
    tf32: bool = False,
) -> tuple[ir.Step, ...]:
    """The same of a module, with numbers for its inputs by their names."""
    program, results = worked_out(bound, arrays, canonical, tf32)
    by_name = [arrays[str(param.name)] for param in bound["main"].params]
    right = run(relax.VirtualMachine(tvm.compile(bound, TARGET), tvm.cpu()), *by_name)
    for one, expected in zip(results, right, strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-4)
    return tuple(step for step in program.steps if not isinstance(step.attrs, ir.Reorder))


def worked_out(
    bound: tvm.IRModule,
    arrays: Mapping[str, np.ndarray],
    canonical: Sequence[tvm.transform.Pass] = (),
    tf32: bool = False,
) -> tuple[ir.Program, list[np.ndarray]]:
    """The program of the one region that a module becomes, and its results in float64."""
    backend = on_h200(tf32)
    passes = [
        relax.transform.ConvertToDataflow(1),
        *canonical,
        DispatchOperators(preference_of([backend])),
        PartitionRegions(),
    ]
    mod = tvm.transform.Sequential(passes)(bound)
    (region,) = [f for f in mod.functions.values() if f.attrs and "Codegen" in f.attrs]
    outside = [one for one in mod["main"].body.blocks[0].bindings if isinstance(one.value, relax.Call)]
    assert len(outside) == 1, "an operator is in no region"
    program, constants, _ = backend.translate(region, "r", default_rates())
    laid_out = infer_layouts(program, backend).program
    given = [arrays[program.values[number].name] for number in program.of_kind("input")]
    return program, run_program(laid_out, constants, given)
