"""What a compilation depends on besides its model: what makes two of them differ, and what does not."""

from __future__ import annotations

import json

import pytest
import tvm

import tvm_mxplan
from tvm_mxplan.cache import surroundings as module
from tvm_mxplan.targets import TargetText

FIELDS = {
    "processor": "0",
    "vendor_id": "AuthenticAMD",
    "cpu family": "25",
    "model": "17",
    "model name": "some processor",
    "stepping": "1",
    "cpu MHz": "2400.003",
    "bogomips": "4800.00",
    "flags": "fpu avx2 avx512f",
}


def facts(monkeypatch: pytest.MonkeyPatch, **fields: str) -> dict:
    changed = {**FIELDS, **{name.replace("_of_", " "): value for name, value in fields.items()}}
    monkeypatch.setattr(module, "processor_fields", lambda: changed)
    return module.shared_surroundings()


def test_they_are_plain_data_and_the_same_each_time(monkeypatch) -> None:
    first = facts(monkeypatch)
    assert first == facts(monkeypatch) == json.loads(json.dumps(first))
    assert {"schema", "versions", "machine"} <= set(first)
    assert {"tvm_mxplan", "apache-tvm", "apache-tvm-ffi", "oneDNN", "plugin"} <= set(first["versions"])


@pytest.mark.parametrize(
    "fields",
    [
        {"vendor_id": "GenuineIntel"},
        {"cpu_of_family": "26"},
        {"model": "18"},
        {"stepping": "2"},
        {"flags": "fpu avx2"},
    ],
)
def test_another_processor_is_another_machine(monkeypatch, fields) -> None:
    assert facts(monkeypatch) != facts(monkeypatch, **fields)


@pytest.mark.parametrize("fields", [{"cpu_of_MHz": "3100.5"}, {"processor": "3"}, {"bogomips": "1"}])
def test_what_changes_from_moment_to_moment_does_not_matter(monkeypatch, fields) -> None:
    assert facts(monkeypatch) == facts(monkeypatch, **fields)


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "TVM_NUM_THREADS"])
def test_numbers_of_threads_matter(monkeypatch, name) -> None:
    before = module.shared_surroundings()
    monkeypatch.setenv(name, "13")
    assert module.shared_surroundings() != before


def test_options_and_pass_contexts_matter() -> None:
    target = TargetText.of("dnnl, llvm")

    def all_of(**options: object) -> dict:
        return module.surroundings(target, tvm_mxplan.Options(**options))

    plain = all_of()
    assert plain == all_of()
    assert plain != all_of(layouts="plain") and plain != all_of(memory="no_reuse")
    contexts = (
        {"opt_level": 3},
        {"required_pass": ["FoldConstant"]},
        {"disabled_pass": ["FoldConstant"]},
        {"config": {"relax.backend.use_cuda_graph": True}},
    )
    found = []
    for context in contexts:
        with tvm.transform.PassContext(**context):
            found.append(all_of())
    assert all(one != plain for one in found)
    assert all(one != other for at, one in enumerate(found) for other in found[:at])
