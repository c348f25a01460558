"""The small mistakes that a file of Python may hold, and which of them change nothing."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from _mutate import equivalent
from _mutate.main import sample
from _mutate.rules import is_program, mutants_of
from _mutate.tree import ROOT


def changes(source: str) -> set[str]:
    source = textwrap.dedent(source)
    return {mutant.change for mutant in mutants_of("m.py", source) if is_program(mutant, source)}


def in_function(line: str) -> set[str]:
    return changes(f"def f(a, b, c):\n    {line}\n    return a\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("c = a < b", {"< -> <="}),
        ("c = (a + b) not in c", {"+ -> -", "not in -> in"}),
        ("c = a * (b // c)", {"* -> +", "// -> *"}),
        (
            "c = a and (b or c)",
            {"and -> or", "or -> and", "a and ->", "and (b or c) ->", "b or ->", "or c ->"},
        ),
        ("c = [not a, -b]", {"not a -> a", "-b -> b", "[not a, -b] -> [not a]", "[not a, -b] -> [-b]"}),
        ("c = a if b else c", {"b -> not (b)"}),
        ("c = [x for x in a if b]", {"b -> True"}),
        ("c = 3, 0.5, True", {"3 -> 4", "0.5 -> 1.5", "True -> False"}),
        ("c = g(a, b, key=c)", {"a, b -> b, a", ", key=c ->"}),
        ("c = min(a, b)", {"min -> max"}),
        ("c = math.gcd(a, b)", set()),
        ("c = a[b:c]", {"b ->", "c ->"}),
        ("c = {'x': a, 'y': b}", {"'x': a, ->", ", 'y': b ->"}),
        ("g(a)", {"g(a) -> pass"}),
        ("a[b] = c", {"a[b] = c -> pass"}),
        ("a += b", {"a += b -> pass"}),
    ],
)
def test_the_mistakes_in_one_line(line: str, expected: set[str]) -> None:
    assert {change.strip() for change in in_function(line)} == expected


def test_jumps_are_dropped_but_for_the_last_return() -> None:
    source = """
        def f(a):
            for b in a:
                if b:
                    continue
                if a:
                    raise ValueError(f"{a + 1} is not {b}")
                return b
            return a
    """
    dropped = {change for change in changes(source) if change.endswith("pass")}
    assert dropped == {
        "continue -> pass",
        'raise ValueError(f"{a + 1} is not {b}") -> pass',
        "return b -> pass",
    }


def test_a_return_of_nothing_where_a_function_ends_is_left() -> None:
    """Wherever it stands; one that saves what is behind it is dropped like any other."""
    source = textwrap.dedent("""
        def f(a, b):
            if a:
                return
            try:
                b.go()
            except ValueError:
                if b:
                    return None
                return 1
            except KeyError:
                return None
            else:
                with b:
                    return
    """)
    lines = [mutant.line for mutant in mutants_of("m.py", source) if mutant.kind == "statement"]
    assert lines == [4, 6, 9, 10]


def test_going_on_where_a_turn_ends_is_left() -> None:
    source = textwrap.dedent("""
        def f(a):
            for b in a:
                if b:
                    continue
                try:
                    b.go()
                except ValueError:
                    continue
            return a
    """)
    lines = [mutant.line for mutant in mutants_of("m.py", source) if mutant.kind == "statement"]
    assert lines == [5, 7]


def test_fields_and_defaults_of_a_dataclass() -> None:
    source = """
        @dataclass(frozen=True)
        class A:
            x: int
            y: int = 3

            def f(self, z: int = 5) -> int:
                return self.x
    """
    assert changes(source) == {"y: int = 3 -> pass", "3 -> 4", "5 -> 6"}


def test_text_types_and_what_only_tells_are_left_alone() -> None:
    source = '''
        """Text of 3 lines, not more than 4."""
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from x import y
        __all__ = ["a", "b"]
        Number = int | float
        Name = Literal["a", "b", 3]

        def f(a: tuple[int, 3] | None, *, b: Literal[1, 2]) -> dict[str, 3]:
            """Does 1 or 2."""
            c: list[3] = a
            assert a > 3
            print("a", 3)
            return f"{a + 3} of {b}"

        class C:
            def __repr__(self) -> str:
                return str(self.a + 1)
    '''
    assert changes(source) == set()


def test_an_edit_in_the_text() -> None:
    source = "é = 'é'\n\ndef f(a):\n    return a <= 'é'\n"
    (mutant,) = mutants_of("p/m.py", source)
    assert (mutant.function, mutant.line, mutant.kind) == ("f", 4, "compare")
    assert mutant.apply(source) == source.replace("<=", "<")
    assert "-    return a <= 'é'\n+    return a < 'é'\n" in mutant.diff(source)


def test_lines_are_those_of_statements_that_run() -> None:
    """A default is made on import, one of a function inside another where that one runs."""
    source = "X = 1\ndef f(a=2):\n    def g(b=3):\n        return (b +\n            4)\n    return g\n"
    lines = {mutant.change: (mutant.line, mutant.function) for mutant in mutants_of("m.py", source)}
    assert lines["1 -> 2"] == (0, "")
    assert lines["2 -> 3"] == (0, "f")
    assert lines["3 -> 4"] == (3, "f.g")
    assert lines["4 -> 5"] == (4, "f.g")


@pytest.mark.slow
def test_a_sample_is_that_of_its_seed_and_of_many_kinds() -> None:
    file = "tvm_mxplan/core/assignment.py"
    text = (ROOT / file).read_text()
    first = sample(file, text, [], 8, 1)
    assert first == sample(file, text, [], 8, 1) != sample(file, text, [], 8, 2)
    assert len({mutant.kind for mutant in first}) == 8
    every = sample(file, text, [], None, 1)
    assert set(first) < set(every)
    known = [equivalent.Equivalent(m.path, m.function, m.change, "") for m in first]
    assert not set(first) & set(sample(file, text, known, None, 1))


def test_every_edit_that_is_listed_as_equivalent_is_one_and_says_why() -> None:
    listed = equivalent.read(equivalent.LIST.read_text())
    texts = {one.path: (ROOT / one.path).read_text() for one in listed}
    found = {path: mutants_of(path, text) for path, text in texts.items()}
    for one in listed:
        assert any(one.names(mutant) for mutant in found[one.path]), f"no such edit any more: {one}"
        assert len(one.reason) > 15, one
    assert len(listed) == len({(one.path, one.function, one.change) for one in listed})


def test_a_line_of_the_list() -> None:
    (one,) = equivalent.read("# remark\n\na.py | f | x | y -> x & y | for reasons\n")
    assert one == equivalent.Equivalent("a.py", "f", "x | y -> x & y", "for reasons")
    for wrong in ("a.py | f | x -> y", "a.py | f | x | reason"):
        with pytest.raises(ValueError, match="line 1: expected"):
            equivalent.read(wrong)
