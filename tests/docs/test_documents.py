"""Documents name files, pages and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOPS = ("byoc", "passes", "scripts", "tests", "tvm_mxplan")
NAMED = re.compile(r"`([\w./-]+\.(?:py|cc|h))`")
"""A file in the way that prose names it: by the end of its path."""
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def ends(path: Path) -> set[str]:
    """Every way to name a file by the end of its path."""
    parts = path.relative_to(ROOT).parts
    return {"/".join(parts[at:]) for at in range(len(parts))}


@pytest.fixture(scope="module")
def named_files() -> set[str]:
    sources = (
        path for top in TOPS for path in (ROOT / top).rglob("*") if path.suffix in {".py", ".cc", ".h"}
    )
    return {name for path in [*sources, *ROOT.glob("*.py")] for name in ends(path)}


def anchors(page: Path) -> set[str]:
    """Names by which a page's headings are linked, made as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in LEADING.findall(page.read_text())
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path, named_files: set[str]) -> None:
    names = set(NAMED.findall(page.read_text()))
    assert names <= named_files, "renamed, or gone"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(CODE.sub("", page.read_text())):
        if target.startswith(("http:", "https:")):
            continue
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), f"{page.name} links {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page.name} links {target}#{anchor}"


def test_pages_name_files_at_all() -> None:
    assert len(NAMED.findall((ROOT / "docs" / "architecture.md").read_text())) > 20
    assert sum(len(LINK.findall(CODE.sub("", page.read_text()))) for page in PAGES) > 50
