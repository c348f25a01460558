"""A compilation depends on more than its model: some changes around it make two differ, others do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tvm

import tvm_mxplan
from tvm_mxplan import byoc, passes
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.cache.key import surroundings as module
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
    ours = {"tvm_mxplan", "apache-tvm", "apache-tvm-ffi", "oneDNN", "plugin"}
    assert ours | {"numpy", "scipy", "ml_dtypes"} <= set(first["versions"])
    assert len(first["versions"]["plugin"]) == 16
    assert {"CPUs allowed", "OMP_NUM_THREADS", "TVM_NUM_THREADS", "flags"} <= set(first["machine"])


@pytest.mark.parametrize(
    "fields",
    [
        {"vendor_id": "GenuineIntel"},
        {"cpu_of_family": "26"},
        {"model": "18"},
        {"model_of_name": "another processor"},
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


def test_targets_matter() -> None:
    options = tvm_mxplan.Options()
    asked = [TargetText.of(text) for text in ("dnnl, llvm", "llvm", "dnnl, host, llvm")]
    found = [module.surroundings(target, options) for target in asked]
    assert all(one != other for at, one in enumerate(found) for other in found[:at])


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


@pytest.mark.parametrize("package", [tvm_mxplan, byoc, passes], ids=lambda package: package.__name__)
def test_every_file_of_the_plug_in_matters(monkeypatch, package) -> None:
    """Python's and C++'s, in every folder, by content and by name; nothing else."""
    before = module._plugin_digest()
    folder = Path(package.__path__[0]).resolve()
    read = Path.read_bytes
    changed: list[Path] = []

    def spoilt(path: Path) -> bytes:
        return read(path) + (b"#" if path in changed else b"")

    monkeypatch.setattr(Path, "read_bytes", spoilt)
    files = [min(folder.rglob(f"*{suffix}")) for suffix in module._SOURCES if any(folder.rglob(f"*{suffix}"))]
    assert files
    for file in files:
        changed[:] = [file]
        assert module._plugin_digest() != before, file
    changed[:] = [folder / "README.md", *folder.rglob("*.pyc")]
    assert module._plugin_digest() == before


def test_the_library_and_its_settings_matter(monkeypatch) -> None:
    found = [module.shared_surroundings()]
    for where, name, value in (
        (library, "isa", "avx2"),
        (library, "threads", 77),
        (module.os, "sched_getaffinity", {0, 1, 2, 3, 4, 5, 6}),
        (module.registry, "kernel_environment", {"oneDNN environment": {"ONEDNN_MAX_CPU_ISA": "AVX2"}}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, lambda *_, value=value: value)
            found.append(module.shared_surroundings())
    assert all(one != other for at, one in enumerate(found) for other in found[:at])


def test_without_tvm_the_pass_context_is_as_it_begins(monkeypatch) -> None:
    known = module._pass_context()
    monkeypatch.delitem(module.sys.modules, "tvm")
    assert module._pass_context() == known
