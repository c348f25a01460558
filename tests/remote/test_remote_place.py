"""``There``: what is asked, what is compared, and which modules are made with little of their weights."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm.target import codegen

from tvm_mxplan import RemoteError
from tvm_mxplan.byoc import registry
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.decisions.verification import Checked
from tvm_mxplan.core.kernel import Kernel
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.remote import server
from tvm_mxplan.remote.place import There
from tvm_mxplan.tuning.facts import machine


class Connection:
    """To a machine like this one."""

    remote = "server"

    def __init__(self, **other: object) -> None:
        cpu = codegen.llvm_get_system_cpu()
        self.told = {
            "facts": machine(),
            "code": registry.code(),
            "versions": {},
            "threads": 2,
            "cpu": cpu,
            **other,
        }
        self.asked: list[str] = []

    def ask(self, name: str, *arguments: object) -> object:
        if name == "machine":
            self.asked.append(name)
            return self.told
        assert name == "engine"
        self.asked.append(str(arguments[1]))
        return server.engine(*arguments)


def product(monkeypatch) -> tuple[ir.Program, np.ndarray, list[np.ndarray]]:
    """A matrix product, its weights, and a list of those that modules are made with."""
    shapes = (("input", (2, 300)), ("constant", (300, 70)), ("output", (2, 70)))
    values = tuple(ir.Value("", shape, "float32", kind, "ab", 0) for kind, shape in shapes)
    operands = tuple(ir.Operand(role, n) for n, role in enumerate(("src", "weights", "dst")))
    used: list[np.ndarray] = []
    monkeypatch.setattr(OneDNN, "create_module", lambda *of: used.append(of[-1][0].numpy()))
    weights = np.random.default_rng(0).standard_normal((300, 70)).astype(np.float32)
    return ir.Program("", values, (ir.Step("", ir.MatMul(), operands),)), weights, used


def test_weights_that_are_only_measured_repeat(monkeypatch):
    program, weights, used = product(monkeypatch)
    there = There(Connection())
    assert there.elsewhere == ""
    backend = there.backend("onednn")
    tensors = [tvm.runtime.tensor(weights)]
    with there.only_measured():
        backend.create_module("m", program, tensors)
    backend.create_module("m", program, tensors)
    measured, real = used
    assert measured.shape == weights.shape
    flat, own = measured.reshape(-1), weights.reshape(-1)
    for start in range(0, flat.size, 4096):
        part = flat[start : start + 4096]
        np.testing.assert_array_equal(part, own[: part.size])
    assert len(zlib.compress(measured.tobytes(), 1)) < weights.nbytes / 3
    np.testing.assert_array_equal(real, weights)


def test_equal_programs_are_asked_about_once(monkeypatch):
    program, *_ = product(monkeypatch)
    connection = Connection()
    backend = There(connection).backend("onednn")
    first, second = backend.describe(program), backend.describe(program)
    assert first == second == OneDNN().describe(program)
    assert first.steps[0].implementation
    assert connection.asked == ["machine", "describe"]


def test_a_machine_of_another_kind():
    """A library that is compiled for it does not run here; the blocks of its layouts are its own."""
    other = {"instruction set": "cpu_isa_avx2"}
    ours = machine()["instruction set"]
    there = There(Connection(facts={**machine(), **other}, code={**registry.code(), **other}))
    if ours != "cpu_isa_avx2":
        assert f"where the instruction set is cpu_isa_avx2, not {ours} as here" in there.elsewhere
    assert there.backend("onednn").block == 8
    assert "CPU for LLVM is z80, not" in There(Connection(cpu="z80")).elsewhere
    with pytest.raises(RemoteError, match=r"server: tvm_mxplan's plug-in is 0\.0 there"):
        There(Connection(facts={**machine(), "plug-in": "0.0"}))


def test_kernels_are_checked_and_refused_over_there():
    class Server(Connection):
        """Answers as the server's process does, from its own functions."""

        def ask(self, name: str, *arguments: object) -> object:
            if name != "check_kernel":
                return super().ask(name, *arguments)
            self.asked.append(name)
            return getattr(server, name)(*arguments)

    shapes = (("input", (2, 300)), ("constant", (300, 70)), ("output", (2, 70)))
    values = tuple(ir.Value("", shape, "float32", kind, "ab", 0) for kind, shape in shapes)
    operands = tuple(ir.Operand(role, n) for n, role in enumerate(("src", "weights", "dst")))
    program = ir.Program("", values, (ir.Step("", ir.MatMul(), operands),))
    connection = Server()
    there = There(connection)
    backend = there.backend("onednn")
    info = backend.describe(program).steps[0]
    step = replace(program.steps[0], implementation=info.implementation)
    kernel = Kernel(replace(program, steps=(step,)))
    assert there.check_kernel(backend, kernel) == Checked("agreed")
    try:
        backend.refuse(info.descriptor, info.implementation, "a test")
        assert backend.describe(program).steps[0].implementation != info.implementation
        assert there.check_kernel(backend, kernel).outcome == "unchecked"
    finally:
        library.forget_refusals()
    assert connection.asked.count("check_kernel") == 2 and connection.asked.count("refuse") == 1
