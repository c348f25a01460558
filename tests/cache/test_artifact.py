"""Modules of a compilation as entries of a file: what is kept of each, and modules that no file holds."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tvm_mxplan.cache import artifact
from tvm_mxplan.cache.artifact import entries_of
from tvm_mxplan.cache.container import Entry
from tvm_mxplan.errors import UnsupportedError


class Module:
    """Of a kind that is written in bytes of its own, unless it says otherwise."""

    def __init__(self, kind: str, *imports: Module, written: bool = True) -> None:
        self.kind, self.imports, self._written = kind, list(imports), written

    def same_as(self, other: Module) -> bool:
        return self is other

    def is_binary_serializable(self) -> bool:
        return self._written


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules have no engine, and their kind for bytes."""
    monkeypatch.setattr(artifact.registry, "engine_of", lambda module: None)
    monkeypatch.setattr(artifact.region_module, "module_bytes", lambda module: module.kind.encode())


def entries(module: Module) -> tuple[Any, list[Entry]]:
    """The tree of modules, and what is kept beside it."""
    stated = SimpleNamespace(to_json=dict)
    first, *others = entries_of(SimpleNamespace(mod=module), stated, stated, {}, [], packed=False)  # type: ignore[arg-type]
    return json.loads(bytes(first.payload))["tree"], others


def test_each_module_is_kept_once_with_its_imports() -> None:
    tree, others = entries(Module("one", Module("two"), Module("three", Module("four"))))
    assert tree["kind"] == "one" and [child["kind"] for child in tree["imports"]] == ["two", "three"]
    assert [child["kind"] for child in tree["imports"][1]["imports"]] == ["four"]
    assert {entry.name: bytes(entry.payload) for entry in others} == {
        "0": b"one", "1": b"two", "2": b"three", "3": b"four"
    }  # fmt: skip
    assert tree["imports"][1]["imports"][0]["bytes"] == "3"


def test_a_module_that_two_others_import_is_refused() -> None:
    """It would be two of them when it is read."""
    shared = Module("shared")
    with pytest.raises(UnsupportedError, match="a shared module is imported twice"):
        entries(Module("one", shared, Module("two", shared)))


def test_a_module_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a strange module cannot be written"):
        entries(Module("one", Module("strange", written=False)))
