"""``There``: a machine behind a connection as a place to measure on and to compile for.

Everything that decides is asked over there: what oneDNN would do with a step, what a step takes, what a plan
is worth.  So it makes no difference here which instruction sets either machine has.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.target import codegen

from ..byoc.backend import Backend
from ..byoc.onednn import library
from ..byoc.onednn.backend import OneDNN
from ..core import codec
from ..core import program as ir
from ..core.description import Description
from ..core.kernel import Kernel
from ..core.verification import Checked
from ..determinism import Determinism
from ..errors import RemoteError
from ..linking import write_library
from ..passes.layout.measure import Sample
from ..tuning.facts import machine
from ..tuning.place import Sampler
from ..tuning.values import Port
from .address import Remote
from .connection import Connection, connection

_KEPT = 4096
"""Of a plan that is sent to be measured, how many numbers of each constant stand in for all."""


class RemoteOneDNN(OneDNN):
    """oneDNN as it would work at the other end of a connection; equal programs are asked about once.

    Attributes
    ----------
    repeats_weights : whether modules get weights that repeat their own first numbers: they take as long, and
        a library with them is sent in a small part of the time.
    """

    def __init__(self, connection: Connection, isa: str) -> None:
        self._connection = connection
        self._isa = isa
        self._answers: dict[bytes, Description] = {}
        self.repeats_weights = False

    @property
    def isa(self) -> str:
        return self._isa

    def describe(self, program: ir.Program) -> Description:
        data = codec.encode(program)
        if data not in self._answers:
            self._answers[data] = library.read_description(self._connection.ask("describe", data))
        return self._answers[data]

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        self._connection.ask("refuse", descriptor, implementation, reason)
        self._answers.clear()

    def create_module(
        self, symbol: str, program: ir.Program, constants: list[tvm.runtime.Tensor]
    ) -> tvm.runtime.Module:
        if self.repeats_weights:
            constants = [_repeating(constant) for constant in constants]
        return super().create_module(symbol, program, constants)


class There:
    """A :class:`tvm_mxplan.tuning.place.Place` at the other end of a connection.

    Attributes
    ----------
    cpu : the machine's CPU as LLVM names it.

    Raises
    ------
    RemoteError : another version of tvm_mxplan is at work there.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._backends: list[RemoteOneDNN] = []
        told = connection.ask("machine")
        self.facts: Mapping[str, Any] = told["facts"]
        self.versions: Mapping[str, str] = told["versions"]
        self.threads = int(told["threads"])
        self.cpu = str(told["cpu"])
        self.elsewhere = self._compared(machine(), str(codegen.llvm_get_system_cpu()))

    def backend(self, library: str) -> Backend:
        assert library == OneDNN().library
        self._backends.append(RemoteOneDNN(self._connection, self.facts["instruction set"]))
        return self._backends[-1]

    @contextmanager
    def only_measured(self) -> Iterator[None]:
        for backend in self._backends:
            backend.repeats_weights = True
        try:
            yield
        finally:
            for backend in self._backends:
                backend.repeats_weights = False

    def determinism(self, measured: bool) -> Determinism:
        return Determinism(self.threads, self.facts["instruction set"], self.facts["oneDNN"], measured)

    def check(self, strategy: str) -> None:
        self._connection.ask("check", strategy)

    def time(self, backend: Backend, question: ir.Program, threads: int | None) -> Sample:
        value, repeats = self._connection.ask("time_step", codec.encode(question), threads or 0)
        return float(value), int(repeats)

    def check_kernel(self, backend: Backend, kernel: Kernel) -> Checked:
        outcome, reason = self._connection.ask("check_kernel", codec.encode(kernel.program))
        return Checked(outcome, reason)

    def sampler(self, strategy: str, ports: Sequence[Port]) -> Sampler:
        def upload(module: Any) -> Callable[[], float]:
            name = f"plan{next(self._numbers)}.so"
            with tempfile.TemporaryDirectory(prefix="mxplan-") as folder:
                path = Path(folder) / name
                write_library(module, path, "a plan to measure")
                self._connection.upload(path, name)
            sample = self._connection.make("plan", name, strategy, json.dumps(ports))
            return lambda: float(self._connection.told(sample))

        return upload

    def _compared(self, ours: Mapping[str, Any], cpu: str) -> str:
        for name in ("plug-in", "schema"):
            if self.facts.get(name) != ours[name]:
                raise RemoteError(
                    f"{self._connection.remote}: tvm_mxplan's {name} is {self.facts.get(name)} there and "
                    f"{ours[name]} here; install the same version on both machines"
                )
        compared = {name: (self.facts[name], ours[name]) for name in ("instruction set", "oneDNN")}
        for name, (there, here) in {**compared, "CPU for LLVM": (self.cpu, cpu)}.items():
            if there != here:
                return (
                    f"compiled for the {self._connection.remote}, where the {name} is {there}, "
                    f"not {here} as here; export it, and run it there"
                )
        return ""


@contextmanager
def connected(remote: Remote) -> Iterator[There]:
    """The machine that ``remote`` names; its server is let go in the end."""
    with connection(remote) as opened:
        yield There(opened)


def _repeating(constant: tvm.runtime.Tensor) -> tvm.runtime.Tensor:
    array = constant.numpy()
    return tvm.runtime.tensor(np.resize(array.reshape(-1)[:_KEPT], array.shape))
