"""Times of operators on the CPU and on a device: the arithmetic by hand, and what a device cannot run."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tvm
import tvm_ffi
from costs_by_hand import rates
from dataflow_text import dataflow
from tvm import relax

from tvm_mxplan.core.machine import DeviceRates
from tvm_mxplan.passes.annotations import CPU
from tvm_mxplan.passes.devices import Beside
from tvm_mxplan.passes.devices.device_times import DeviceTimes, is_operator, runs_on_device, type_on
from tvm_mxplan.passes.region import NameOperators

GPU = "cuda"
HERE = rates()
"""480 GFLOP/s; 40 GB/s, and 80 within 2 MiB; 0.5 microseconds to start."""
THERE = replace(rates(gflops=9600.0, gbytes=400.0, cache_bytes=0), start_us=3.0)
SIDE = 768
PRODUCT = 2 * SIDE**3
MOVED = 3 * 4 * SIDE**2


def beside(preferred: bool = True) -> Beside:
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90"})
    return Beside(target, DeviceRates(THERE, 10.0, 12.0), preferred)


def bindings(lines: str, parameters: str) -> list[tuple[tvm.ir.Var, relax.Expr]]:
    mod = NameOperators()(dataflow(lines, parameters=parameters))
    return [(one.var, one.value) for block in mod["main"].body.blocks for one in block.bindings]


def times(
    of: tuple[tvm.ir.Var, relax.Expr],
    kept: float | None = None,
    taken: dict[str, tuple[str, ...]] | None = None,
    preferred: bool = True,
) -> dict[str, float]:
    known = DeviceTimes(beside(preferred), HERE, {of[0]: kept}, taken or {})
    return dict(known(*of))


MATRICES = ", ".join(f'{name}: R.Tensor(({SIDE}, {SIDE}), "float32")' for name in "xw")
BY_LIBRARY = 0.5 + PRODUCT / (0.5 * 480e3)
"""Microseconds on the CPU where a library takes the product."""


@pytest.fixture(scope="module")
def product() -> tuple[tvm.ir.Var, relax.Expr]:
    return bindings("y = R.matmul(x, w)", MATRICES)[0]


@pytest.mark.parametrize(
    ("kept", "taken", "here"),
    [
        (None, (), BY_LIBRARY),  # nobody knows TVM's
        (9e4, (), 9e4),
        (9e4, ("matmul_0",), BY_LIBRARY),
        (9e4, ("relu_0",), 9e4),
        (70.0, ("matmul_0",), 70.0),
    ],
)
def test_the_cpu_takes_what_tvms_kernel_does_or_a_library_that_is_faster(product, kept, taken, here) -> None:
    assert times(product, kept, {CPU: taken}, preferred=False)[CPU] == pytest.approx(here)


@pytest.mark.parametrize(("taken", "share"), [(("matmul_0",), 0.5), ((), 0.1), (("relu_0",), 0.1)])
def test_the_device_takes_its_start_and_the_roofline(product, taken, share) -> None:
    there = 3.0 + PRODUCT / (share * 9600e3)
    assert times(product, 9e4, {GPU: taken, CPU: ("matmul_0",)})[GPU] == pytest.approx(there)


def test_the_device_that_is_not_preferred_has_to_be_clearly_faster(product) -> None:
    here, there = 9e4, 3.0 + PRODUCT / (0.1 * 9600e3)
    assert times(product, here) == pytest.approx({CPU: 1.25 * here, GPU: there})
    assert times(product, here, preferred=False) == pytest.approx({CPU: here, GPU: 1.25 * there})


def test_what_only_moves_bytes_takes_as_long_as_they_do() -> None:
    (exp,) = bindings("y = R.add(x, w)", MATRICES)
    found = times(exp, preferred=False)
    assert found == pytest.approx({CPU: 0.5 + MOVED / 40e3, GPU: 1.25 * (3.0 + MOVED / 400e3)})


def test_views_are_free_and_shapes_the_cpus() -> None:
    view, shape = bindings("a = R.reshape(x, (16, 2))\ny = R.shape_of(a)", 'x: R.Tensor((4, 8), "float32")')
    assert times(view) == {CPU: 0.0, GPU: 0.0}
    assert times(shape) == {CPU: 0.0}


def test_names_and_tuples_stand_on_either_side_and_branches_on_the_cpu() -> None:
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    pair = relax.Tuple([x, x])
    y = relax.Var("y", relax.TensorType((4, 8), "float32"))
    for value in (x, pair, relax.TupleGetItem(pair, 0), relax.const(1.0)):
        assert times((y, value)) == {CPU: 0.0, GPU: 0.0}
    condition = relax.Var("c", relax.TensorType((), "bool"))
    branch = relax.If(condition, relax.SeqExpr([], x), relax.SeqExpr([], x))
    function = relax.Function([x], relax.SeqExpr([], x), x.ty)
    assert times((y, branch)) == times((y, function)) == {CPU: 0.0}


def test_calls_of_kernels_and_functions_are_the_cpus() -> None:
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    packed = relax.call_dps_packed("one", [x], out_ty=x.ty)
    pure = relax.call_pure_packed("two", x, ty_args=[x.ty])
    for value in (packed, pure, relax.Call(relax.ExternFunc("three"), [x], ty_args=[x.ty])):
        assert not is_operator(value) and times((x, value), taken={GPU: ("",)}) == {CPU: 0.0}
    assert is_operator(relax.op.exp(x)) and not is_operator(x)


def test_what_no_tensor_goes_into_runs_on_the_cpu() -> None:
    """But where a library of the device takes it: its kernel needs nothing of TVM."""
    zeros = bindings('y = R.zeros((4, 8), "float32")', 'x: R.Tensor((4, 8), "float32")')[0]
    assert not runs_on_device(zeros[1], beside())
    assert times(zeros, 5.0) == {CPU: 0.0}
    assert not runs_on_device(relax.op.null_value(), beside()), "its type says of no device"
    taken = times(zeros, 5.0, {GPU: ("zeros_0",)})
    assert set(taken) == {CPU, GPU} and taken[CPU] == 1.25 * 5.0


def test_operators_whose_result_is_on_the_device_run_there() -> None:
    x, w = (relax.Var(name, relax.TensorType((4, 8), "float32")) for name in "xw")
    for call in (relax.op.add(x, w), relax.op.concat([x, w], 1), relax.op.split(x, 2, 1), relax.op.exp(x)):
        assert runs_on_device(call, beside())
    elsewhere = relax.VDevice(tvm.target.Target("llvm"), 0, "global")
    assert not runs_on_device(relax.op.to_vdevice(x, elsewhere), beside())
    assert not runs_on_device(relax.op.add(x, relax.Var("s", relax.ShapeType([4, 8]))), beside())


def test_types_are_moved_with_all_that_they_hold() -> None:
    there = relax.VDevice(beside().target, 0, "global")
    tensor = relax.TensorType((4, 8), "float16")
    moved = type_on(tensor, there)
    assert (list(map(int, moved.shape.values)), str(moved.dtype), moved.vdevice) == ([4, 8], "float16", there)
    both = type_on(tvm.ir.TupleType([tensor, relax.ShapeType(ndim=2)]), there)
    assert both.fields[0].vdevice == there and isinstance(both.fields[1], relax.ShapeType)
    unknown = type_on(relax.TensorType(None, "int32", ndim=3), there)
    assert (unknown.shape, int(unknown.ndim), str(unknown.dtype), unknown.vdevice) == (
        None,
        3,
        "int32",
        there,
    )
    back = type_on(moved, None)
    assert back.vdevice is None and tvm_ffi.structural_equal(back, tensor)


def test_the_device_is_preferred_unless_it_is_said_otherwise() -> None:
    assert Beside(beside().target, DeviceRates(THERE, 10.0, 12.0)).preferred
    assert not beside(False).preferred and beside().name == GPU


def test_only_libraries_of_devices_run_on_one() -> None:
    class Library:
        pass

    class OfDevice(Library):
        def for_device(self, _choice: object) -> object:
            raise NotImplementedError

    assert [beside().runs(library) for library in (Library(), OfDevice())] == [False, True]
