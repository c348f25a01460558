"""scripts/mutate: the mistakes that it makes, the tests that it picks, and what it says of them."""

from __future__ import annotations

import ast
import marshal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from _mutate import main, tree
from _mutate.baseline import Baseline, Observations, named_in, what_counts
from _mutate.main import Tried, summary
from _mutate.mutants import Mutant
from _mutate.reached import NAME, instrument, kept_code
from _mutate.server import Ended
from _mutate.tree import ROOT, module_of, sources


def test_statements_note_that_they_run() -> None:
    source = textwrap.dedent("""
        def f(a):
            '''Text.'''
            if a > 1:
                return 1
            elif a > 0:
                b = 2
            else:
                b = 3
            return b
        """)
    reached = bytearray(20)
    names: dict = {NAME: reached}
    exec(instrument(source, "m.py"), names)
    assert not any(reached)
    assert (names["f"](1), names["f"].__doc__) == (2, "Text.")
    assert [line for line, run in enumerate(reached) if run] == [4, 6, 7, 10]


OBSERVED = {
    "tests/test_a.py": {
        "imported": ["m.py"],
        "shared": {"m.py": [2]},
        "tests": {
            "long": {"seconds": 9.0, "lines": {"m.py": [3, 4]}},
            "short": {"seconds": 1.0, "lines": {"m.py": [3]}},
            "other": {"seconds": 0.1, "lines": {"n.py": [3]}},
        },
    }
}


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (3, 60, ("short", "long")),
        (3, 5, ("short",)),
        (4, 5, ("long",)),
        (9, 60, ()),
        (2, 60, ("other", "short", "long")),
        (0, 60, ("other", "short", "long")),
    ],
)
def test_tests_that_run_the_line_quickest_first(line: int, limit: float, expected: tuple[str, ...]) -> None:
    mutant = Mutant("m.py", "f", "constant", line, 0, 1, "1", "2")
    selected = Baseline(OBSERVED).select(mutant, ["tests/test_a.py"], limit)
    assert selected.tests == expected
    assert selected.left_out == (1 if limit == 5 and line == 3 else 0)


def test_tests_of_the_own_name_run_first() -> None:
    def seen(test: str, seconds: float) -> dict:
        return {"imported": [], "shared": {}, "tests": {test: {"seconds": seconds, "lines": {"m.py": [3]}}}}

    observed = {"tests/test_m.py": seen("own", 3.0), "tests/test_other.py": seen("other", 1.0)}
    mutant = Mutant("m.py", "f", "constant", 3, 0, 1, "1", "2")
    assert Baseline(observed).select(mutant, list(observed), 60).tests == ("own", "other")
    assert Baseline(observed).select(mutant, list(observed), 2).tests == ("other",)


@pytest.mark.parametrize("pattern", tree.TESTS)
def test_the_map_names_files_that_are_there(pattern: str) -> None:
    assert sources([pattern]), "no source file"
    for tests in tree.TESTS[pattern]:
        assert list(ROOT.glob(tests)), tests


def test_tests_that_are_left_out() -> None:
    every = tree.tests_of("byoc/onednn/codegen.py")
    assert (
        every[0] == "tests/byoc/onednn/test_codegen.py" and "tests/operators/movement/test_slices.py" in every
    )
    rest = [test for test in every if not test.startswith("tests/operators/")]
    assert tree.tests_of("byoc/onednn/codegen.py", ["tests/operators/*"]) == rest
    assert "tests/byoc/onednn/test_patterns.py" in rest, "of the folder that mirrors its own"


def test_a_folder_without_tests_has_those_of_the_one_above() -> None:
    found = tree.tests_of("byoc/rewrites/quantized/lower.py", ["tests/operators/*"])
    assert "tests/byoc/rewrites/test_quantized_rewrites.py" in found
    package = "tvm_mxplan/core/allocation/native/__init__.py"
    assert tree.named_tests_of(package) == ["tests/core/allocation/test_native.py"]
    assert tree.tests_of(package)[0] == "tests/core/allocation/test_native.py"
    assert tree.named_tests_of("byoc/onednn/codegen.py") == ["tests/byoc/onednn/test_codegen.py"]


class Fake:
    """A server: one test of each file fails as it is, and those of ``noticing`` files fail on a mutant."""

    def __init__(self, *noticing: str) -> None:
        self.noticing, self.recorded, self.tried = noticing, [], []  # type: ignore[var-annotated]

    def record(self, test: str, *_: object) -> dict:
        self.recorded.append(test)
        ran = {f"{test}::passes": {"seconds": 2.0, "lines": {"m.py": [3]}}}
        return {"imported": [], "shared": {}, "tests": ran, "failed": [f"{test}::fails"]}

    def test(self, _path: str, _text: str, tests: tuple[str, ...], _seconds: float) -> Ended:
        self.tried.append(tests)
        failed = any(test.startswith(self.noticing) for test in tests) if self.noticing else False
        return Ended(int(failed), "", 1.0)


OWN, OTHER = "tests/core/test_policies.py", "tests/core/test_kernel.py"


@pytest.mark.parametrize(
    ("noticing", "limit", "noticed", "tried"),
    [
        ((OWN,), 10, True, [OWN]),
        ((OTHER,), 10, True, [OWN, OTHER]),
        ((), 10, False, [OWN, OTHER]),
        ((OTHER,), 2, False, [OWN]),
    ],
)
def test_files_of_tests_are_looked_at_when_they_are_wanted(
    tmp_path, monkeypatch, capsys, noticing, limit, noticed, tried
) -> None:
    """Those of the own name first; what they spend, others have not; what fails beforehand is told."""
    monkeypatch.setattr("_mutate.baseline.KEPT", tmp_path)
    server = Fake(*noticing)
    mutant = Mutant("m.py", "f", "constant", 3, 0, 1, "1", "2")
    found = main._try(server, Baseline(Observations(server)), mutant, "1\n", ([OWN], [OTHER]), limit)
    assert (found.noticed, found.tests) == (noticed, len(tried))
    assert server.tried == [(f"{test}::passes",) for test in tried] and OWN in server.recorded
    assert f"{OWN}::fails fails before anything is changed and is left out" in capsys.readouterr().err
    Observations(server)[OWN]
    assert server.recorded.count(OWN) == 1, "what was observed is kept"


def test_a_share_of_the_files() -> None:
    files = [f"{number}.py" for number in range(20)]
    assert main.some(files, 1.0, 3) == files
    assert main.some(files, 0.0, 3) == []
    half, other = (main.some(files, 0.5, seed) for seed in (3, 4))
    assert half != other and half == main.some(files, 0.5, 3)
    assert len(half) == 10 and sorted(half, key=files.index) == half and set(half) < set(files)


def test_what_an_observation_rests_on() -> None:
    """All of a file that was run, of another one what runs on import, of a third nothing."""
    observed = {
        "imported": ["run.py", "imported.py"],
        "shared": {},
        "tests": {"test": {"seconds": 1.0, "lines": {"run.py": [2]}}},
    }
    text = "A = 1\ndef f():\n    return 1\n"
    body, top = text.replace("return 1", "return 2"), text.replace("A = 1", "A = 2")
    texts = {"run.py": text, "imported.py": text, "other.py": text}
    before = what_counts(texts, observed)
    assert set(before) == {"run.py", "imported.py"}
    for file, changed, counts in (
        ("run.py", body, True),
        ("run.py", top, True),
        ("imported.py", body, False),
        ("imported.py", top, True),
        ("other.py", top, False),
    ):
        assert (what_counts({**texts, file: changed}, observed) != before) == counts


def test_instrumented_code_is_kept_for_one_text_of_one_file(tmp_path) -> None:
    def run(text: str, path: str) -> int:
        names = {NAME: bytearray(9)}
        exec(kept_code(text, path, tmp_path), names)
        return names["A"]

    assert run("A = 1\n", "m.py") == 1
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(marshal.dumps(compile("A = 7", "m.py", "exec")))
    assert run("A = 1\n", "m.py") == 7  # as it was kept
    assert run("A = 2\n", "m.py") == 2 and run("A = 1\n", "n.py") == 1
    assert len(list(tmp_path.iterdir())) == 3


def test_a_module_without_functions_is_tested_by_who_imports_it_first() -> None:
    def seen(imported: list[str], test: str) -> dict:
        return {"imported": imported, "shared": {}, "tests": {test: {"seconds": 1.0, "lines": {}}}}

    observed = {"a": seen([], "one"), "b": seen(["m.py"], "two"), "c": seen(["m.py"], "three")}
    mutant = Mutant("m.py", "", "constant", 0, 0, 1, "1", "2")
    assert Baseline(observed).select(mutant, ["a", "b", "c"], 60).tests == ("two",)
    inside = Mutant("m.py", "f", "constant", 7, 0, 1, "1", "2")
    assert Baseline(observed).select(inside, ["a", "b", "c"], 60).tests == ()


def test_what_runs_on_import_is_for_those_who_name_the_module() -> None:
    """Tests of data run no line of the module that has it."""

    def seen(test: str, lines: dict[str, list[int]]) -> dict:
        return {"imported": ["m.py"], "shared": {}, "tests": {test: {"seconds": 1.0, "lines": lines}}}

    observed = {"a": seen("one", {}), "b": seen("two", {"m.py": [7]}), "c": seen("three", {})}
    baseline = Baseline(observed, {"a": ["n.py"], "b": [], "c": ["m.py"]}.__getitem__)
    on_import = Mutant("m.py", "", "constant", 0, 0, 1, "1", "2")
    assert baseline.select(on_import, ["a", "b", "c"], 60).tests == ("two", "three")
    assert baseline.select(replace(on_import, line=7), ["a", "b", "c"], 60).tests == ("two",)
    named = named_in("tests/scripts/test_mutate.py") | named_in("tests/core/decisions/test_origin.py")
    assert named == {"tvm_mxplan/core/decisions/origin.py"}
    assert {"passes/costs/model.py", "tvm_mxplan/core/program/program.py"} <= named_in(
        "tests/passes/costs/test_model_costs.py"
    )


@pytest.mark.slow
def test_every_file_of_the_plan_has_tests() -> None:
    for file in sources(["tvm_mxplan/core", "tvm_mxplan/cache", "passes", "byoc/onednn"]):
        if ast.parse((ROOT / file).read_text()).body[1:]:
            assert tree.tests_of(file), file
    assert tree.tests_of("passes/memory/view_slices.py")[0] == "tests/passes/memory/test_view_slices.py"
    assert module_of("passes/memory/__init__.py") == "tvm_mxplan.passes.memory"


def test_the_table_counts_by_folder() -> None:
    def tried(path: str, noticed: bool) -> Tried:
        return Tried(Mutant(path, "f", "constant", 1, 0, 1, "1", "2"), noticed, "", 2.0)

    rows = summary([tried("a/x.py", True), tried("a/y.py", False), tried("b/z.py", True)])
    assert rows[2:] == [
        "| a | 2 | 1 | 50% | 4 |",
        "| b | 1 | 1 | 100% | 2 |",
        "| all | 3 | 2 | 67% | 6 |",
    ]


def test_the_list_runs_nothing(capsys) -> None:
    assert main.main(["tvm_mxplan/core/program/dims.py", "--list", "--sample", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


IN_MEMORY = """
import sys
from pathlib import Path
from _mutate.server import Server
from _mutate.tree import ROOT

source, tests = "tvm_mxplan/core/fingerprint.py", []
folder = Path(sys.argv[1])
server, text = Server(folder, folder / "code"), (ROOT / source).read_text()
collected = server.record("tests/core/test_fingerprint.py", [source], 300)
tests = list(collected["tests"])
assert tests and all(ran["lines"] for ran in collected["tests"].values()), collected
broken, endless = text + "\\nraise RuntimeError('changed')\\n", text + "\\nwhile True: pass\\n"
for changed, limit in ((text, 300), (broken, 300), (endless, 1)):
    ended = server.test(source, changed, tests, limit)
    print(ended.status, "out of time" in ended.reason)
assert (ROOT / source).read_text() == text
"""


@pytest.mark.slow
def test_tests_run_on_changed_text_in_memory(tmp_path) -> None:
    """As it is, all pass; broken, some fail; without an end, it is stopped. The file itself stays."""
    ran = subprocess.run(
        [sys.executable, "-c", IN_MEMORY, str(tmp_path)],
        env={"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    passed, failed, stopped = ran.stdout.splitlines()
    assert passed == "0 False"
    assert failed.split()[0] not in ("0", "None")
    assert stopped == "None True"
