"""Decisions by what was asked: found for the same question only, noted once, counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tvm_mxplan.core.decisions.choices import DISPATCH, Choices, Key, Question
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol


def program(name: str = "region_0", extent: object = 17, layout: str = "abcd") -> ir.Program:
    shape = (1, extent, 5, 6)
    values = (
        ir.Value("x", shape, "float32", "input", layout, 0),  # type: ignore[arg-type]
        ir.Value("y", shape, "float32", "output", "abcd", 0),  # type: ignore[arg-type]
    )
    step = ir.Step("r", ir.Reorder(), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    return ir.Program(name, values, (step,))


def decided(extent: object = 17, implementation: str = "jit:uni") -> ir.Program:
    """The program with one thing decided."""
    (step,) = program().steps
    return replace(program(extent=extent), steps=(replace(step, implementation=implementation),))


DECIDED = decided()
CONTEXT = {"machine": "a", "threads": 2}


def made(context: object = CONTEXT, kind: str = "layouts", given: object = "cost") -> dict[Key, bytes]:
    choices = Choices(context)  # type: ignore[arg-type]
    choices.note(Question(kind, program(), given), DECIDED)  # type: ignore[arg-type]
    return choices.made


def test_what_was_noted_is_found_under_another_name() -> None:
    choices = Choices(CONTEXT, made())
    found = choices.find(Question("layouts", program("region_7"), "cost"))
    assert found == replace(DECIDED, name="region_7")
    assert choices.has_known and not Choices(CONTEXT).has_known


def test_a_program_of_which_one_size_is_open_is_not_kept() -> None:
    values = (*DECIDED.values, ir.Value("z", (Symbol("n"), 3), "float32", "local", "ab"))
    choices = Choices(CONTEXT)
    open_somewhere = replace(program(), values=values, symbols=(ir.SymbolBinding("n", -1, 0),))
    choices.note(Question("layouts", open_somewhere, "cost"), open_somewhere)
    assert (choices.made, choices.regions, choices.symbolic) == ({}, 1, 1)


@pytest.mark.parametrize(
    "question",
    [
        Question("algorithms", program(), "cost"),
        Question("layouts", program(extent=16), "cost"),
        Question("layouts", program(layout="acdb"), "cost"),
        Question("layouts", program(), "plain"),
    ],
    ids=["kind", "shape", "layout", "what is given"],
)
def test_another_question_has_no_answer(question: Question) -> None:
    assert Choices(CONTEXT, made()).find(question) is None


def test_another_context_has_no_answer() -> None:
    question = Question("layouts", program(), "cost")
    for context in ({}, {"machine": "b", "threads": 2}, {"machine": "a", "threads": 3}):
        assert Choices(context, made()).find(question) is None
    assert Choices(CONTEXT).find(question) is None


def test_bytes_that_are_no_program_are_no_answer() -> None:
    known = {key: data[:-1] for key, data in made().items()}
    assert Choices(CONTEXT, known).find(Question("layouts", program(), "cost")) is None


def test_two_questions_in_turns() -> None:
    """Finding and noting the same question makes one key; another one in between changes nothing."""
    choices = Choices(CONTEXT, made())
    first, second = Question("layouts", program(), "cost"), Question("layouts", program(extent=3), "cost")
    assert choices.find(first) is not None
    assert choices.find(second) is None
    choices.note(second, decided(extent=3))
    assert choices.find(first) is not None
    assert len(choices.made) == 1
    again = Choices(CONTEXT, choices.made)
    assert again.find(second) == decided(extent=3)
    assert again.find(first) is None


def test_regions_are_counted_by_their_layouts() -> None:
    choices = Choices(CONTEXT)
    choices.note(Question("algorithms", program(), ""), DECIDED)
    assert (choices.regions, choices.used, choices.symbolic) == (0, 0, 0)
    choices.note(Question("layouts", program(), ""), DECIDED, known=True)
    choices.note(Question("layouts", program(extent=3), ""), DECIDED)
    assert (choices.regions, choices.used, choices.symbolic) == (2, 1, 0)
    choices.note(Question("layouts", program(extent=Symbol("n")), ""), DECIDED)
    assert (choices.regions, choices.used, choices.symbolic) == (3, 1, 1)
    assert sorted(key.kind for key in choices.made) == ["algorithms", "layouts", "layouts"]
    assert all(codec.decode(data) == DECIDED for data in choices.made.values())


def test_advice_holds_in_any_context_where_nothing_is_known() -> None:
    question = Question("layouts", program(), "cost")
    choices = Choices(CONTEXT)
    choices.advise(made(context={}))
    assert choices.find(question) == DECIDED
    assert choices.find(Question("layouts", program(), "plain")) is None
    both = Choices(CONTEXT, {key: codec.encode(decided(implementation="ref")) for key in made()})
    both.advise(made(context={}))
    assert both.find(question) == decided(implementation="ref")
    assert choices.again().find(question) is None


def test_to_begin_again_keeps_what_is_known_and_forgets_what_was_made() -> None:
    choices = Choices(CONTEXT, made())
    choices.note(Question("layouts", program(extent=3), ""), DECIDED)
    again = choices.again()
    assert (again.made, again.regions) == ({}, 0)
    assert again.find(Question("layouts", program(), "cost")) == DECIDED


def test_kinds_of_operators_are_kept_by_model() -> None:
    choices = Choices(CONTEXT)
    choices.note_dispatch("abc", b"conv2d")
    assert choices.made == {Key(DISPATCH, "abc"): b"conv2d"}
    assert Choices(CONTEXT, choices.made).find_dispatch("abc") == b"conv2d"
    assert choices.find_dispatch("abc") is None


def test_a_question_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For finding and for noting; and its answer is encoded."""
    encoded: list[ir.Program] = []
    encode = codec.encode
    monkeypatch.setattr(codec, "encode", lambda program: encoded.append(program) or encode(program))
    choices, question = Choices(CONTEXT, made()), Question("layouts", program(), "cost")
    encoded.clear()
    assert choices.find(question) == DECIDED
    choices.note(question, DECIDED, known=True)
    assert encoded == [program(name=""), DECIDED]


def test_a_turn_counts_its_own_regions() -> None:
    choices = Choices(CONTEXT)
    for extent in (3, Symbol("n")):
        choices.note(Question("layouts", program(extent=extent), ""), DECIDED, known=True)
    assert (choices.regions, choices.used, choices.symbolic) == (2, 2, 1)
    choices.begin_turn()
    assert (choices.regions, choices.used, choices.symbolic) == (0, 0, 0)


def test_what_is_no_answer_is_told_with_its_file() -> None:
    known = {key: codec.encode(decided(extent=3)) for key in made()}
    question = Question("layouts", program(), "cost")
    for source, begins in (("kept.mxcache", "kept.mxcache: region region_0"), ("", "region region_0")):
        with pytest.warns(RuntimeWarning, match=f"^{begins}: the layouts that were kept are not used"):
            assert Choices(CONTEXT, known, source).find(question) is None
        with pytest.warns(RuntimeWarning, match=f"^{begins}"):
            assert Choices(CONTEXT, known, source).again().find(question) is None
    advised = Choices(CONTEXT)
    advised.advise({key: codec.encode(decided(extent=3)) for key in made(context={})}, "record")
    with pytest.warns(RuntimeWarning, match="^record: region region_0"):
        assert advised.find(question) is None
