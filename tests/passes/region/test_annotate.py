"""Notes of a backend's answers in programs: implementations, bytes, scratchpads, what was refused."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tvm_mxplan.core.description import NOTHING_KNOWN, Refused
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.dims import Symbol, is_static
from tvm_mxplan.passes.region.annotate import annotate

RELU = ir.Eltwise("relu", 0.0, 0.0)


@dataclass
class Answer:
    nbytes: int


@dataclass
class Answers:
    """A backend that answers by the places of steps and values."""

    asked: list[ir.Program] = field(default_factory=list)

    def describe(self, program: ir.Program) -> Any:
        self.asked.append(program)
        refused = Refused("other", "wrong")
        steps = tuple(
            replace(
                NOTHING_KNOWN,
                implementation=f"made:{at}",
                scratchpad_bytes=100 + at,
                refused=(refused,) * at,
            )
            for at in range(len(program.steps))
        )

        class Description:
            values = tuple(Answer(1000 + at) for at in range(len(program.values)))

        Description.steps = steps  # type: ignore[attr-defined]
        return Description


def program(extent: object) -> ir.Program:
    b = ProgramBuilder("p")
    x = b.port("input", "x", (extent, 3), "float32")  # type: ignore[arg-type]
    out = b.port("output", "y", (extent, 3), "float32")  # type: ignore[arg-type]
    first = b.step("one", RELU, (extent, 3), [("src", x)])  # type: ignore[arg-type]
    b.write_output(b.step("two", RELU, (extent, 3), [("src", first)]), out)  # type: ignore[arg-type]
    symbols = () if isinstance(extent, int) else (ir.SymbolBinding("n", 0, 0),)
    return replace(b.finish(), symbols=symbols)


def test_static_programs_get_bytes_too() -> None:
    backend, before = Answers(), program(4)
    after = annotate(before, backend)  # type: ignore[arg-type]
    assert backend.asked == [before]
    assert [step.implementation for step in after.steps] == ["made:0", "made:1"]
    assert [step.scratchpad_bytes for step in after.steps] == [100, 101]
    assert [step.refused for step in after.steps] == [(), ("other",)]
    assert [value.nbytes for value in after.values] == [1000 + at for at in range(len(before.values))]


def test_symbolic_programs_get_implementations_of_typical_shapes() -> None:
    backend, before = Answers(), program(Symbol("n"))
    after = annotate(before, backend)  # type: ignore[arg-type]
    (asked,) = backend.asked
    assert all(is_static(value.shape) for value in asked.values)
    assert [step.implementation for step in after.steps] == ["made:0", "made:1"]
    assert [step.refused for step in after.steps] == [(), ("other",)]
    assert after.values == before.values
    assert [step.scratchpad_bytes for step in after.steps] == [step.scratchpad_bytes for step in before.steps]
