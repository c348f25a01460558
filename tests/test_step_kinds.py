"""One record for each kind of step: no table of the tree is without it, and all say the same of it.

A kind is a class in ``core/program/attributes.py``.  What the other tables say is read from them: rules in
Python and in C++, the builders of each library, references, operands for verification, costs, lists of the
sweep, and the table in docs/libraries/step_kinds.md.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("scripts", "tests/byoc", "tests/byoc/runtime")]

from _sweep.steps import subjects  # noqa: E402
from sound_steps import SOUND, Sound  # noqa: E402

from tvm_mxplan.byoc import registry  # noqa: E402
from tvm_mxplan.byoc.backend import Backend  # noqa: E402
from tvm_mxplan.byoc.cudnn.backend import Cudnn  # noqa: E402
from tvm_mxplan.byoc.cudnn.device import read_device  # noqa: E402
from tvm_mxplan.byoc.cudnn.plans.plans import Plans, Rules  # noqa: E402
from tvm_mxplan.core.machine import default_rates  # noqa: E402
from tvm_mxplan.core.program import codec, program_rules  # noqa: E402
from tvm_mxplan.core.program import program as ir  # noqa: E402
from tvm_mxplan.core.program.program_rules import ProgramError, check_program  # noqa: E402
from tvm_mxplan.core.step_facts import StepFacts, operands_of  # noqa: E402
from tvm_mxplan.opcheck.estimate import as_stored  # noqa: E402
from tvm_mxplan.opcheck.references import REFERENCES, SEVERAL, evaluate  # noqa: E402
from tvm_mxplan.verify import data, references  # noqa: E402

RUNTIME = ROOT / "byoc" / "runtime"
BESIDE = (*ir.SCALE_ROLES, "depthwise_weights", "depthwise_bias")
"""Roles that steps of integers, and post-ops, add to those of a kind."""


@dataclass(frozen=True)
class Record:
    """A kind as the code has it.

    Attributes
    ----------
    needed, optional : roles of operands, results beside dst among them.
    libraries : that run it.
    """

    kind: str
    attributes: type
    needed: tuple[str, ...]
    optional: tuple[str, ...]
    libraries: tuple[str, ...]

    @property
    def sound(self) -> Sound:
        """A step of the kind that all rules take, without post-ops."""
        found = [one for one in SOUND.values() if type(one.attrs) is self.attributes]
        return replace(min(found, key=lambda one: len({"extra", *BESIDE} & set(one.roles))), post_ops=())

    @property
    def results(self) -> tuple[str, ...]:
        return tuple(role for role in (*self.needed, *self.optional) if role in ir.RESULT_ROLES)


@cache
def builders() -> dict[str, set[str]]:
    """Kinds that each library runs: its builders in C++, or the steps that it makes graphs of."""
    found = {}
    for library in ("onednn", "host"):
        text = (RUNTIME / library / "steps" / "registry.cc").read_text()
        found[library] = set(re.findall(r'\{"(\w+)", &?Build', text))
    folder = ROOT / "byoc" / "cudnn"
    files = [folder / "functions.py", *(folder / "graphs").rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    named = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    found["cudnn"] = {kind for kind, cls in ir.STEP_KINDS.items() if cls.__name__ in named}
    return found


@cache
def record(kind: str) -> Record:
    attributes = ir.STEP_KINDS[kind]
    needed, optional = program_rules._ROLES.get(attributes, (("src",), ()))
    runs = tuple(library for library, kinds in builders().items() if kind in kinds)
    return Record(kind, attributes, needed, tuple(role for role in optional if role not in BESIDE), runs)


@cache
def rules_in_cpp() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Roles that a step needs and may have, by kind, as the runtime's rules have them."""
    text = (RUNTIME / "program" / "step_rules.cc").read_text()
    rows = re.findall(r'\{"(\w+)",\s*\{([^}]*)\},\s*\{([^}]*)\},\s*Types::', text)
    return {
        kind: (tuple(re.findall(r'"(\w+)"', needed)), tuple(re.findall(r'"(\w+)"', allowed)))
        for kind, needed, allowed in rows
    }


@cache
def rows_in_docs() -> dict[str, list[str]]:
    """Cells of docs/libraries/step_kinds.md by kind."""
    lines = (ROOT / "docs" / "libraries" / "step_kinds.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return {row[0].strip("`"): row for row in rows if len(row) == 4}


# --- what each table has to say ----------------------------------------------------------------------------


def bytes_of_programs(one: Record) -> bool:
    program, _ = one.sound.program()
    return codec.decode(codec.encode(program)) == program


def rules_in_python(one: Record) -> bool:
    """Each role that is needed is missed."""
    program, _ = one.sound.program()
    check_program(program)
    (step,) = program.steps
    for role in (*one.needed, "dst"):
        less = replace(step, operands=tuple(operand for operand in step.operands if operand.role != role))
        with pytest.raises(ProgramError, match="expected an operand in role"):
            check_program(replace(program, steps=(less,)))
    return True


def rules_of_the_runtime(one: Record) -> bool:
    needed, allowed = rules_in_cpp()[one.kind]
    return (set(needed), set(allowed) - set(BESIDE)) == (set(one.needed), set(one.optional))


def libraries(one: Record) -> bool:
    return bool(one.libraries) and set(builders()) == set(registry.spellings().values())


def reference(one: Record) -> bool:
    """Of the results that the rules have, and no others."""
    program, _ = one.sound.program()
    return set(worked_out(program)) >= {"dst", *one.results} & {o.role for o in program.steps[0].operands}


def worked_out(program: ir.Program) -> dict[str, np.ndarray]:
    """The results of a program's step by its reference, on the operands of verification."""
    (step,) = program.steps
    arrays = data.operands(program)
    given: dict[str, list[np.ndarray]] = {}
    for operand in step.operands:
        if not operand.is_result:
            given.setdefault(operand.role, []).append(arrays[operand.value])
    shape = program.values[step.dst].shape
    found = evaluate(step, shape, given, (), np.dtype(program.values[step.dst].dtype))  # type: ignore[arg-type]
    return {role: estimate.value for role, estimate in found.items()}


def verification(one: Record) -> bool:
    """The reference's own result agrees, and what is far from it does not."""
    program, _ = one.sound.program()
    (step,) = program.steps
    arrays = data.operands(program)
    assert set(arrays) == set(step.reads())
    results = {
        operand.role: as_stored(
            worked_out(program)[operand.role], np.dtype(program.values[operand.value].dtype)
        )
        for operand in step.operands
        if operand.is_result
    }
    dst = results.pop("dst")
    wrong = ~dst if dst.dtype == bool else dst + np.asarray(3, dst.dtype)
    right, spoilt = (references.Run(program, arrays, None, one_of, 0.0, results) for one_of in (dst, wrong))
    return references.judge(right) is None and references.judge(spoilt) is not None


def costs(one: Record) -> bool:
    """Each library that runs the kind gives it a time."""
    program, _ = one.sound.program()
    (step,) = program.steps
    layouts = tuple(program.values[number].layout for _, number in operands_of(step))
    planners = [_planner(library) for library in one.libraries]
    found = [planner.cost(StepFacts(program, step, layouts), default_rates()) for planner in planners]
    return bool(found) and all(math.isfinite(us) and us > 0 for us in found)


def _planner(library: str) -> Backend:
    """A library's planner, for a device where it needs to know one; the library need not be installed."""
    if library != Cudnn.library:
        return registry.planner(library)
    device = read_device(str(ROOT / "tests" / "byoc" / "cudnn" / "devices" / "h200.json"))
    return Cudnn(Plans(device, Rules()))


def docs(one: Record) -> bool:
    _, reads, writes, run_by = rows_in_docs()[one.kind]
    named = re.findall(r"(\w+)(\??)", reads)
    assert {role for role, optional in named if not optional} == set(one.needed) - set(one.results)
    assert {role for role, optional in named if optional} == set(one.optional) - set(one.results)
    assert set(re.findall(r"\w+", writes)) == {"dst", *one.results}
    return set(run_by.split(", ")) == set(one.libraries)


TABLES: dict[str, Callable[[Record], bool]] = {
    "core/program/program.py, __all__": lambda one: one.attributes.__name__ in ir.__all__,
    "core/program/attributes.py, docstring": lambda one: bool(one.attributes.__doc__),
    "core/program/codec.py": bytes_of_programs,
    "core/program/program_rules.py": rules_in_python,
    "byoc/runtime/program/step_rules.cc": rules_of_the_runtime,
    "byoc/runtime/*/steps/registry.cc, byoc/cudnn/graphs": libraries,
    "opcheck/references, REFERENCES or SEVERAL": lambda one: (
        one.attributes in (SEVERAL if one.results else REFERENCES)
    ),
    "opcheck/references, a result": reference,
    "verify": verification,
    "costs": costs,
    "scripts/_sweep/steps/subjects.py": lambda one: one.kind in subjects._KINDS,
    "docs/libraries/step_kinds.md": docs,
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", ir.STEP_KINDS)
def test_a_kind_is_in_every_table(kind: str, table: str) -> None:
    assert TABLES[table](record(kind)), f"{kind} is missing in {table}, or stands there otherwise"


def test_tables_have_no_other_kinds() -> None:
    kinds = set(ir.STEP_KINDS)
    assert set(rules_in_cpp()) == kinds == set(rows_in_docs()) == set().union(*builders().values())
    assert set(program_rules._ROLES) <= set(ir.STEP_KINDS.values())
    assert set(subjects._KINDS) == kinds
    assert {*REFERENCES, *SEVERAL} == set(ir.STEP_KINDS.values())


@pytest.mark.parametrize("table", ["core/program/codec.py", "byoc/runtime/program/step_rules.cc", "costs"])
def test_a_kind_that_a_table_lacks_is_seen(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    """A new class, entered as a kind alone, is in no table."""

    @dataclass(frozen=True)
    class Invented:
        """src -> dst."""

    monkeypatch.setitem(ir.STEP_KINDS, "invented", Invented)
    monkeypatch.setitem(SOUND, "invented", Sound(Invented(), (2, 3), {"src": (2, 3)}))  # type: ignore[arg-type]
    record.cache_clear()
    try:
        with pytest.raises((KeyError, AssertionError, ProgramError)):
            test_a_kind_is_in_every_table("invented", table)
    finally:
        record.cache_clear()
