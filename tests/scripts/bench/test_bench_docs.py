"""The command that makes the tables of docs/performance.md: what it replaces, and what it leaves alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench import documents  # noqa: E402
from _bench.__main__ import BENCHMARKS  # noqa: E402
from _bench.documents import SECTIONS, Section  # noqa: E402

DOCUMENT = "# Title\n\ntext\n\n<!-- models: begin -->\n\nold\n\n<!-- models: end -->\n\nmore\n"


def test_a_block_is_replaced_between_its_marks() -> None:
    new = documents.replaced(DOCUMENT, "models", "| new |")
    assert new == DOCUMENT.replace("old", "| new |")
    with pytest.raises(ValueError, match="no marks <!-- choices: begin -->"):
        documents.replaced(DOCUMENT, "choices", "| new |")


def test_titles_go_and_sections_go_down() -> None:
    assert documents.body("# Title\n\n## Batch 1\n\n| a |\n") == "### Batch 1\n\n| a |"


def test_the_document_has_every_mark_and_every_script_is_there() -> None:
    for name, section in SECTIONS.items():
        text = (documents.FOLDER / section.page).read_text()
        assert documents.replaced(text, name, "new") != text
        assert section.benchmark in BENCHMARKS


@pytest.mark.slow
def test_a_section_runs_and_lands_in_the_document(tmp_path, monkeypatch) -> None:
    pytest.importorskip("onnxruntime")
    document = tmp_path / "page.md"
    document.write_text(DOCUMENT)
    monkeypatch.setitem(
        SECTIONS, "models", Section("accuracy", "--models tiny --engines ours", 300, "page.md")
    )
    monkeypatch.setenv("PYTHON", sys.executable)
    assert documents.main(["--sections", "models", "--folder", str(tmp_path)]) == 0
    text = document.read_text()
    assert text.startswith("# Title\n\ntext\n") and text.endswith("<!-- models: end -->\n\nmore\n")
    assert "old" not in text
    assert "    scripts/bench accuracy --models tiny --engines ours\n\ndate: " in text
    assert "| tiny | 1 | " in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "section", [Section("accuracy", "--nonsense", 60, "page.md"), Section("accuracy", "", 0.01, "page.md")]
)
def test_what_fails_or_is_too_slow_stays_as_it_was(tmp_path, monkeypatch, section: Section) -> None:
    document = tmp_path / "page.md"
    document.write_text(DOCUMENT)
    monkeypatch.setitem(SECTIONS, "models", section)
    monkeypatch.setenv("PYTHON", sys.executable)
    assert documents.main(["--sections", "models", "--folder", str(tmp_path)]) == 1
    assert document.read_text() == DOCUMENT


def test_priority_is_asked_for_once() -> None:
    commands = {name: section.command(realtime=True) for name, section in SECTIONS.items()}
    assert commands["models"][-1] == "--realtime" and "chrt" not in commands["models"]
    assert commands["choices"][:3] == ["chrt", "-f", "5"]
    assert SECTIONS["choices"].command(realtime=False)[:2] == ["scripts/bench", "choices"]
