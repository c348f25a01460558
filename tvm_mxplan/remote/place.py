"""``There``: a machine behind a connection as a place to measure on and to compile for.

Everything that decides is asked over there: what a library would do with a step, what a step takes, what a
plan is worth.  So it makes no difference here which instruction sets either machine has.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tvm.target import codegen

from ..byoc import registry
from ..byoc.backend import Backend
from ..core.decisions.verification import Checked
from ..core.kernel import Kernel
from ..core.machine import MachineRates
from ..core.program import codec
from ..core.program import program as ir
from ..errors import RemoteError
from ..execution.determinism import Determinism
from ..export.linking import write_library
from ..passes.layout.measure import Sample
from ..tuning.facts import machine
from ..tuning.place import Sampler
from ..tuning.values import Port
from .address import Remote
from .connection import Connection, connection


class There:
    """A :class:`tvm_mxplan.tuning.place.Place` at the other end of a connection.

    Attributes
    ----------
    code : what tells libraries' machine code apart over there.
    cpu : the machine's CPU as LLVM names it.

    Raises
    ------
    RemoteError : another version of tvm_mxplan is at work there.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._backends: list[Backend] = []
        told = connection.ask("machine")
        self.facts: Mapping[str, Any] = told["facts"]
        self.code: Mapping[str, str] = told["code"]
        self.versions: Mapping[str, str] = told["versions"]
        self.threads = int(told["threads"])
        self.cpu = str(told["cpu"])
        self.elsewhere = self._compared(machine(), str(codegen.llvm_get_system_cpu()))

    def rates(self, kept: bool) -> MachineRates:
        return MachineRates.from_json(self._connection.ask("rates", int(kept)))

    def backend(self, library: str) -> Backend:
        ask = partial(self._connection.ask, "engine", library)
        self._backends.append(registry.engine(library).planner_elsewhere(ask, self.facts))
        return self._backends[-1]

    @contextmanager
    def only_measured(self) -> Iterator[None]:
        for backend in self._backends:
            backend.repeats_weights = True  # type: ignore[attr-defined]
        try:
            yield
        finally:
            for backend in self._backends:
                backend.repeats_weights = False  # type: ignore[attr-defined]

    def determinism(self, measured: bool) -> Determinism:
        return Determinism(self.threads, self.code, measured)

    def check(self, strategy: str) -> None:
        self._connection.ask("check", strategy)

    def time(self, backend: Backend, question: ir.Program, threads: int | None) -> Sample:
        value, repeats = self._connection.ask(
            "time_step", backend.library, codec.encode(question), threads or 0
        )
        return float(value), int(repeats)

    def check_kernel(self, backend: Backend, kernel: Kernel) -> Checked:
        outcome, reason = self._connection.ask("check_kernel", backend.library, codec.encode(kernel.program))
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
        compared = {name: (self.code.get(name), value) for name, value in registry.code().items()}
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
