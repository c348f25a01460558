"""Devices of operators: by their times and copies, by what each side's libraries take, by the user's wish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
import tvm
from costs_by_hand import rates
from dataflow_text import dataflow
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from tvm_mxplan.byoc.backend import Refuse
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.machine import DeviceRates
from tvm_mxplan.passes.annotations import CPU, devices_in
from tvm_mxplan.passes.devices import Beside, ChooseDevices, device_times
from tvm_mxplan.passes.devices.device_times import DeviceTimes
from tvm_mxplan.passes.dispatch.implementations import preference_of
from tvm_mxplan.passes.region import NameOperators

GPU = "cuda"
HERE = rates()
THERE = replace(rates(gflops=9600.0, gbytes=400.0, cache_bytes=0), start_us=3.0)
LINES = "a = R.nn.relu(x)\nb = R.exp(a)\ny = R.tanh(b)"


class Library:
    """A library of the CPU that takes some elementwise operators."""

    def __init__(self, library: str, *operators: str) -> None:
        self.library = library
        self.name = f"mxplan_{library}"
        self._operators = operators

    def patterns(self, _refuse: Refuse) -> list[relax.transform.FusionPattern]:
        return [
            relax.transform.FusionPattern(
                f"{self.name}.one", is_op(f"relax.{name}")(wildcard()), {}, lambda _context: True
            )
            for name in self._operators
        ]


class OfDevice(Library):
    """One of the device."""

    def for_device(self, _choice: object) -> object:
        raise NotImplementedError


def beside() -> Beside:
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90"})
    return Beside(target, DeviceRates(THERE, 10.0, 12.0))


LIBRARIES = [Library("near", "nn.relu", "exp"), OfDevice("far", "exp", "tanh")]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, object]]:
    """Two libraries, and times by which each operator has a cheaper device; returns the queries."""
    seen: list[Mapping[str, object]] = []

    def of(*given: object) -> object:
        seen.append(given[-1])  # type: ignore[arg-type]
        assert given[2:4] == (given[2], HERE)
        cheap = {"relu": CPU, "exp": GPU, "tanh": CPU}

        def known(_variable: tvm.ir.Var, value: relax.Expr) -> Mapping[str, float]:
            kind = str(value.op.name).rpartition(".")[2] if isinstance(value, relax.Call) else ""
            own = cheap.get(kind, CPU)
            return {device: 1.0 if device == own else 900.0 for device in (CPU, GPU)}

        return known

    monkeypatch.setattr(DeviceTimes, "of", of)
    return seen


def chosen(**options: object) -> dict[str, str]:
    preference = preference_of(LIBRARIES, **options)  # type: ignore[arg-type]
    mod = NameOperators()(dataflow(LINES))
    after = ChooseDevices(preference, beside(), HERE)(mod)
    plain = after["main"].without_attr("mxplan.devices")
    tvm.ir.assert_structural_equal(plain, mod["main"])
    found = devices_in(after)
    assert found is not None and set(found) == {"relu_0", "exp_0", "tanh_0"}
    return found


def test_each_operator_is_on_the_cheaper_device(asked) -> None:
    assert chosen() == {"relu_0": CPU, "exp_0": GPU, "tanh_0": CPU}
    assert asked == [{CPU: {"relu_0", "exp_0"}, GPU: {"exp_0", "tanh_0"}}]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ({"exp": "near"}, {"relu_0": CPU, "exp_0": CPU, "tanh_0": CPU}),
        ({"tanh_0": "far"}, {"relu_0": CPU, "exp_0": GPU, "tanh_0": GPU}),
        ({"exp": "llvm"}, {"relu_0": CPU, "exp_0": GPU, "tanh_0": CPU}),  # TVM is on both
    ],
)
def test_a_library_that_the_user_wants_decides(asked, first, expected) -> None:
    assert chosen(first=first) == expected
    kept = {"exp_0"} if first == {"exp": "llvm"} else set()
    assert asked == [{CPU: {"relu_0", "exp_0"} - kept, GPU: {"exp_0", "tanh_0"} - kept}]


def test_a_library_that_is_absent_takes_nothing(asked) -> None:
    preference = preference_of(LIBRARIES)
    gone = tuple(
        replace(one, absent="not installed") if one.name == "near" else one
        for one in preference.implementations
    )
    mod = NameOperators()(dataflow(LINES))
    ChooseDevices(replace(preference, implementations=gone), beside(), HERE)(mod)
    assert asked == [{CPU: set(), GPU: {"exp_0", "tanh_0"}}]


def test_by_estimates_a_large_product_goes_to_the_device_and_small_sums_stay() -> None:
    parameters = 'x: R.Tensor((1024, 1024), "float32"), w: R.Tensor((1024, 1024), "float32")'
    lines = "a = R.matmul(x, w)\nb = R.matmul(a, w)\nc = R.max(b, axis=[0, 1])\ny = R.exp(c)"
    mod = NameOperators()(dataflow(lines, parameters=parameters))
    after = devices_in(ChooseDevices(preference_of([]), beside(), HERE)(mod))
    assert after is not None and (after["matmul_0"], after["matmul_1"]) == (GPU, GPU)
    small = NameOperators()(dataflow("y = R.exp(x)", parameters='x: R.Tensor((8,), "float32")'))
    assert devices_in(ChooseDevices(preference_of([]), beside(), HERE)(small)) == {"exp_0": CPU}


def test_what_has_no_name_has_no_device_and_the_module_stays_as_it_was(asked) -> None:
    """Fields of tuples and names of tensors are no operators."""
    mod = NameOperators()(dataflow("a = R.split(x, 3, 1)\nb = a[0]\ny = R.exp(b)"))
    before = mod["main"]
    after = ChooseDevices(preference_of(LIBRARIES), beside(), HERE)(mod)
    assert devices_in(after) == {"split_0": CPU, "exp_0": GPU}
    assert mod["main"].same_as(before) and devices_in(mod) is None


def test_an_operator_that_tvm_cannot_type_on_the_device_is_noted(asked, monkeypatch) -> None:
    def fails(call: relax.Call, _there: relax.VDevice) -> tvm.ir.Type:
        raise ValueError(f"Traceback\n{call.op.name} is nowhere")

    mod, journal = NameOperators()(dataflow(LINES)), Journal()
    preference = preference_of(LIBRARIES)
    ChooseDevices(preference, beside(), HERE, journal)(mod)
    assert journal.failures == {}
    monkeypatch.setattr(device_times, "_type_there", fails)
    after = ChooseDevices(preference, beside(), HERE, journal)(mod)
    assert devices_in(after) is not None
    # What a library takes there needs no kernel of TVM's.
    assert journal.failures == {"relu_0": "its type on cuda: relax.nn.relu is nowhere"}
