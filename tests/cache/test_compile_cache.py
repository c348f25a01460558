"""``cache="on_compile"``: the second compilation reads what the first one wrote, or does its work again."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import tvm
from onnx import helper, numpy_helper
from tvm import relax

import tvm_mxplan
from tvm_mxplan import opcheck
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.cache import compile_cache, container
from tvm_mxplan.cache.compile_cache import CompileCache
from tvm_mxplan.cache.container import Container
from tvm_mxplan.frontend.stated_inputs import StatedInputs
from tvm_mxplan.targets import TargetText
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2

X = zoo.random_images((1, 3, 32, 32))


@pytest.fixture(scope="module")
def tiny() -> onnx.ModelProto:
    return zoo.load("tiny")


def compiled(model, **options) -> tvm_mxplan.Executable:
    ex = tvm_mxplan.compile(model, options={"cache": "on_compile", **options})
    assert ex.report.regions
    return ex


def outcome(model, **options) -> str:
    return compiled(model, **options).report.cache.outcome


def facts_of(ex: tvm_mxplan.Executable) -> object:
    """The report without what is of one compilation alone."""
    return replace(ex.report, seconds={}, cache=type(ex.report.cache)())


def check(ex: tvm_mxplan.Executable, model: onnx.ModelProto) -> None:
    inputs = zoo.random_inputs(model, seed=3)
    actual = [tensor.numpy() for tensor in ex(**inputs)]
    assert worst_relative_l2(actual, onnxruntime_outputs(model, inputs)) <= 1e-5


@pytest.fixture(scope="module")
def with_kernels() -> onnx.ModelProto:
    """Two regions with an operator of TVM's own between them."""
    weights = np.random.default_rng(0).standard_normal((17, 3, 3, 3), np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"]),
        helper.make_node("Cos", ["c"], ["g"]),
        helper.make_node("Tanh", ["g"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "kernels",
        [helper.make_tensor_value_info("image", 1, (1, 3, 9, 9))],
        [helper.make_tensor_value_info("y", 1, (1, 17, 7, 7))],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# --- time ---------------------------------------------------------------------------------------------


def test_all_that_the_cache_takes_is_counted(tiny, cache_folder, monkeypatch):
    """By a clock that ticks once each time it is read: a second for what is asked, found and kept."""
    target = TargetText.of("onednn, llvm")
    ticks = iter(range(100))
    monkeypatch.setattr(compile_cache.time, "perf_counter", lambda: float(next(ticks)))
    options = tvm_mxplan.Options(cache="on_compile")
    cache = CompileCache(tiny, StatedInputs(), target, options)
    assert cache.seconds == 1.0
    assert cache.find() is None
    assert (cache.seconds, cache.report.outcome) == (2.0, "miss")
    told: list[dict[str, Any]] = []
    report = SimpleNamespace(seconds={"passes": 1.5})
    executable = SimpleNamespace(report=report, amend_report=lambda **fields: told.append(fields))
    monkeypatch.setattr(compile_cache, "_store", lambda *_: "name.mxcache")
    assert cache.keep(executable, {}) is executable
    assert (cache.seconds, told[0]["seconds"]) == (3.0, {"passes": 1.5, "cache": 3.0})
    assert (told[0]["cache"].outcome, told[0]["cache"].file) == ("miss", "name.mxcache")
    assert CompileCache(tiny, None, target, tvm_mxplan.Options(cache="disabled")).seconds == 0.0


# --- hits ---------------------------------------------------------------------------------------------


def test_the_second_compilation_is_read(tiny, cache_folder, monkeypatch):
    cold = compiled(tiny)
    assert (cold.report.cache.outcome, cold.report.cache.reason) == ("miss", "no such file")
    monkeypatch.setattr(relax, "build", lambda *_, **__: pytest.fail("built again"))
    warm = compiled(tiny)
    assert warm.report.cache.outcome == "hit"
    assert warm.report.cache.file == cold.report.cache.file
    assert [path.name for path in cache_folder.glob("*.mxcache")] == [cold.report.cache.file]
    assert warm.signature == cold.signature
    assert facts_of(warm) == facts_of(cold)
    assert set(warm.report.seconds) == {"cache"}
    np.testing.assert_array_equal(warm(X)[0].numpy(), cold(X)[0].numpy())
    check(warm, tiny)
    assert "cache: hit" in str(warm.report)
    assert tvm_mxplan.Report.from_json(warm.report.to_json()) == warm.report


def test_a_file_and_a_proto_are_one_model(tiny, tmp_path):
    onnx.save(tiny, tmp_path / "tiny.onnx")
    assert outcome(tmp_path / "tiny.onnx") == "miss"
    assert outcome(tiny) == "hit"
    ex = compiled(tmp_path / "tiny.onnx")
    assert ex.report.cache.outcome == "hit"
    (tmp_path / "tiny.onnx").write_bytes(b"")  # weights were copied out of the file
    check(ex, tiny)


def test_a_relax_module(tiny):
    from tvm_mxplan.frontend.onnx import import_model

    mod = import_model(tiny)
    cold, warm = compiled(mod), compiled(import_model(tiny))
    assert (cold.report.cache.outcome, warm.report.cache.outcome) == ("miss", "hit")
    np.testing.assert_array_equal(warm(X)[0].numpy(), cold(X)[0].numpy())


def test_a_symbolic_batch():
    model = zoo.load("tiny", batch="N")
    assert outcome(model) == "miss"
    ex = compiled(model)
    assert ex.report.cache.outcome == "hit"
    for batch in (1, 3):
        inputs = zoo.random_inputs(model, batch=batch)
        actual = [tensor.numpy() for tensor in ex(**inputs)]
        assert worst_relative_l2(actual, onnxruntime_outputs(model, inputs)) <= 1e-5


@pytest.mark.parametrize("target", ["dnnl, llvm", "llvm"])
def test_kernels_of_tvms_own(with_kernels, target, tmp_path):
    """They run from the library that was linked for the file, and can be exported again."""
    inputs = {"image": np.random.default_rng(1).standard_normal((1, 3, 9, 9), np.float32)}
    expected = onnxruntime_outputs(with_kernels, inputs)
    exs = [tvm_mxplan.compile(with_kernels, target, options={"cache": "on_compile"}) for _ in range(2)]
    assert [ex.report.cache.outcome for ex in exs] == ["miss", "hit"]
    for number, ex in enumerate(exs):
        ex.export(tmp_path / f"{number}.so")
        for runnable in (ex, tvm_mxplan.load(tmp_path / f"{number}.so")):
            actual = [tensor.numpy() for tensor in runnable(**inputs)]
            assert worst_relative_l2(actual, expected) <= 1e-5


def test_regions_between_which_a_tensor_crosses(two_regions, tmp_path):
    cold, warm = (compiled(two_regions, convolutions="winograd_f4") for _ in range(2))
    assert warm.report.cache.outcome == "hit"
    steps = [step for region in warm.report.regions for step in region.steps]
    assert [step.implementation for step in steps if step.kind == "convolution"] == ["winograd_f4"] * 2
    assert all(region.crossing and region.layouts for region in warm.report.regions)
    assert facts_of(warm) == facts_of(cold)
    inputs = zoo.random_inputs(two_regions, seed=3)
    warm.export(tmp_path / "warm.so")
    for ex in (warm, tvm_mxplan.load(tmp_path / "warm.so")):
        np.testing.assert_array_equal(ex(**inputs)[0].numpy(), cold(**inputs)[0].numpy())
    assert worst_relative_l2([warm(**inputs)[0].numpy()], onnxruntime_outputs(two_regions, inputs)) <= 1e-5


def region_modules(module: Any) -> list[Any]:
    found = [module] if module.kind == "mxplan_onednn" else []
    return found + [region for child in module.imports for region in region_modules(child)]


def packed_bytes(ex: tvm_mxplan.Executable) -> int:
    """Bytes of packed weights that the process holds for an executable that has run."""
    return sum(library.stats(region)["packed_weight_bytes"] for region in region_modules(ex.module.mod))


@pytest.mark.parametrize("algorithm", ["direct", "winograd_f4"])
def test_packed_weights_are_used_where_the_file_is_mapped(two_regions, cache_folder, tmp_path, algorithm):
    cold, warm = (compiled(two_regions, convolutions=algorithm) for _ in range(2))
    assert warm.report.cache.outcome == "hit"
    inputs = zoo.random_inputs(two_regions, seed=3)
    packings = tvm_mxplan.cache_statistics()["weights"].misses
    actual = warm(**inputs)[0].numpy()
    assert tvm_mxplan.cache_statistics()["weights"].misses == packings
    assert packed_bytes(warm) == 0
    np.testing.assert_array_equal(actual, cold(**inputs)[0].numpy())
    assert packed_bytes(cold) > 0
    assert worst_relative_l2([actual], onnxruntime_outputs(two_regions, inputs)) <= 1e-5
    opcheck.check(warm, **inputs).raise_first()
    warm.export(tmp_path / "warm.so")  # plain weights, as ever
    cold.export(tmp_path / "cold.so")
    sizes = [(tmp_path / name).stat().st_size for name in ("warm.so", "cold.so")]
    assert abs(sizes[0] - sizes[1]) < 4096
    np.testing.assert_array_equal(tvm_mxplan.load(tmp_path / "warm.so")(**inputs)[0].numpy(), actual)


def test_without_packed_weights(two_regions, cache_folder):
    cold, warm = (compiled(two_regions, packed_weights=False) for _ in range(2))
    assert warm.report.cache.outcome == "hit"
    (small,) = (path.stat().st_size for path in cache_folder.glob("*.mxcache"))
    assert small < 64 * 64 * 9 * 4  # the weights are the model's, which has just been read
    inputs = zoo.random_inputs(two_regions, seed=3)
    np.testing.assert_array_equal(warm(**inputs)[0].numpy(), cold(**inputs)[0].numpy())
    assert packed_bytes(warm) == packed_bytes(cold) > 0


def test_no_linker(with_kernels, monkeypatch):
    monkeypatch.setattr("tvm.support.cc.get_cc", lambda: None)
    report = compiled(with_kernels).report
    assert report.cache.reason == "no such file; not stored: no C compiler to link TVM's kernels with"
    assert outcome(with_kernels) == "miss"


def test_a_linker_that_fails(with_kernels, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("ld returned 1")

    monkeypatch.setattr("tvm.support.cc.create_shared", fail)
    report = compiled(with_kernels).report
    assert report.cache.reason == "no such file; not stored: RuntimeError: ld returned 1"


def test_a_plug_in_that_cannot_read_itself(tiny, monkeypatch):
    from tvm_mxplan.cache.key import surroundings

    def unreadable(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(surroundings, "_versions", surroundings._versions.__wrapped__)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", unreadable)
        for cache in ("on_compile", "save_reload"):
            report = tvm_mxplan.compile(tiny, options={"cache": cache}).report
            assert report.cache.outcome == "bypassed"
            assert "own files cannot be read (Permission denied)" in report.cache.reason


def test_in_a_fresh_process(tiny, tmp_path):
    onnx.save(tiny, tmp_path / "tiny.onnx")
    expected = compiled(tmp_path / "tiny.onnx")(X)[0].numpy()
    np.save(tmp_path / "x.npy", X)
    code = f"""
        import numpy as np, tvm_mxplan
        ex = tvm_mxplan.compile({str(tmp_path / "tiny.onnx")!r}, options={{"cache": "on_compile"}})
        assert ex.report.cache.outcome == "hit", ex.report.cache
        np.save({str(tmp_path / "y.npy")!r}, ex(np.load({str(tmp_path / "x.npy")!r}))[0].numpy())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)


# --- what makes another compilation -------------------------------------------------------------------


def test_off_by_default(tiny, cache_folder):
    ex = tvm_mxplan.compile(tiny)
    assert ex.report.cache.outcome == "off"
    assert "cache" not in str(ex.report)
    assert [path.name for path in cache_folder.iterdir()] == ["verified"]  # kernels, no compilation


@pytest.mark.parametrize(
    "options",
    [
        {"layouts": "plain"},
        {"memory": "no_reuse"},
        {"tune_seconds": 1.0},
        {"convolutions": "winograd_f4"},
        {"max_relative_error": 1e-3},
        {"layers": "conv2d_1=nhwc"},
        {"layers": {"conv2d_1": "off"}},
        {"deterministic": True},
    ],
)
def test_other_options(tiny, options):
    assert (outcome(tiny), outcome(tiny, **options), outcome(tiny, **options)) == ("miss", "miss", "hit")


def test_what_is_read_is_checked_as_it_was_asked(tiny, tmp_path, monkeypatch):
    """Opcheck is no part of what is kept: each compilation says for itself."""
    assert outcome(tiny) == "miss"
    ex = compiled(tiny, opcheck=True, opcheck_folder=str(tmp_path))
    assert ex.report.cache.outcome == "hit"
    folders: list[str | None] = []
    real = opcheck.checking
    monkeypatch.setattr(opcheck, "checking", lambda folder: folders.append(folder) or real(folder))
    ex(X)
    assert folders == [str(tmp_path)]
    compiled(tiny)(X)
    assert len(folders) == 1


def test_determinism_is_kept(tiny):
    cold, warm = compiled(tiny, deterministic=True), compiled(tiny, deterministic=True)
    assert warm.report.cache.outcome == "hit"
    assert warm.report.determinism is not None
    assert warm.report.determinism == cold.report.determinism
    np.testing.assert_array_equal(warm(X)[0].numpy(), cold(X)[0].numpy())
    assert warm.determinism_lost == []


def test_the_threads_of_onednn(tiny):
    before = library.threads()
    try:
        assert outcome(tiny) == "miss"
        library.set_threads(before + 1)
        assert (outcome(tiny), outcome(tiny)) == ("miss", "hit")
    finally:
        library.set_threads(before)


def test_every_option_says_whether_it_matters():
    options = tvm_mxplan.Options()
    outside = {"cache", "opcheck", "opcheck_folder", "packed_weights", "primitive_cache", "weights_cache"}
    outside |= {"dump_after", "dump_folder", "machine"}  # what it states is a fact of its own
    assert set(options.fingerprinted()) == set(options.__dataclass_fields__) - outside


def test_another_target_version_thread_count_or_pass_context(tiny, monkeypatch):
    from tvm_mxplan.cache.key import surroundings

    assert outcome(tiny) == "miss"
    ex = tvm_mxplan.compile(tiny, "dnnl, llvm -mcpu=x86-64-v3", options={"cache": "on_compile"})
    assert ex.report.cache.outcome == "miss"
    with tvm.transform.PassContext(opt_level=1):
        assert outcome(tiny) == "miss"
    for changed in (
        {"disabled_pass": ["FuseOps"]},
        {"required_pass": ["FuseOps"]},
        {"config": {"relax.backend.use_cuda_graph": True}},
    ):
        with tvm.transform.PassContext(**changed):
            assert outcome(tiny) == "miss", changed
    with monkeypatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "17")
        assert outcome(tiny) == "miss"
    with monkeypatch.context() as patch:
        versions = {**surroundings._versions(), "oneDNN": "9.9.9"}
        patch.setattr(surroundings, "_versions", lambda: versions)
        assert outcome(tiny) == "miss"
    assert outcome(tiny) == "hit"


def test_versions_of_all_that_compiles_count():
    from tvm_mxplan.cache.key import surroundings

    expected = {"tvm_mxplan", "apache-tvm", "apache-tvm-ffi", "numpy", "scipy", "oneDNN"}
    assert expected <= set(surroundings._versions())


@pytest.mark.parametrize("prefix", ["ONEDNN", "DNNL"])
@pytest.mark.parametrize("name", ["DEFAULT_FPMATH_MODE", "CPU_ISA_HINTS", "MAX_CPU_ISA"])
def test_what_onednn_reads_of_the_environment_counts(monkeypatch, prefix, name):
    from tvm_mxplan.cache.key.surroundings import shared_surroundings

    before = shared_surroundings()
    monkeypatch.setenv(f"{prefix}_{name}", "any")
    assert shared_surroundings() != before


def test_a_constant_of_a_type_that_numpy_has_not_got():
    values = np.array([0.25, -1.5, 3.0]).astype(ml_dtypes.bfloat16)

    def module(numbers):
        x = relax.Var("x", relax.TensorType((2, 3), "float32"))
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            with builder.dataflow():
                narrow = builder.emit(relax.op.astype(builder.emit(relax.op.nn.relu(x)), "bfloat16"))
                y = builder.emit_output(relax.op.maximum(narrow, relax.const(numbers, "bfloat16")))
            builder.emit_func_output(y)
        return builder.get()

    assert outcome(module(values)) == "miss"
    assert outcome(module(values)) == "hit"
    assert outcome(module(-values)) == "miss"


def test_a_model_with_a_tensor_of_an_attribute_in_another_file(tmp_path):
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(np.ones((4, 5), "float32"))),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    ends = [[helper.make_tensor_value_info(name, 1, shape)] for name, shape in (("x", (3, 4)), ("y", (3, 5)))]
    model = helper.make_model(
        helper.make_graph(nodes, "g", *ends), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    path = tmp_path / "model.onnx"
    onnx.save_model(
        model,
        path,
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
        convert_attribute=True,
    )
    x = np.ones((3, 4), "float32")
    for factor in (1, 3):
        (np.full((4, 5), 0.5 * factor, "float32")).tofile(tmp_path / "w.bin")
        np.testing.assert_allclose(compiled(path)(x)[0].numpy(), np.full((3, 5), 2.0 * factor))


def changed(model: onnx.ModelProto, change: Callable[[onnx.GraphProto], object]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    change(copy.graph)
    return copy


def one_bit(graph: onnx.GraphProto) -> None:
    tensor = next(tensor for tensor in graph.initializer if len(tensor.raw_data) > 100)
    data = bytearray(tensor.raw_data)
    data[50] ^= 1
    tensor.raw_data = bytes(data)


def other_edge(graph: onnx.GraphProto) -> None:
    relu = next(node for node in graph.node if node.op_type == "Relu")
    reader = next(node for node in graph.node if relu.output[0] in node.input)
    reader.input[list(reader.input).index(relu.output[0])] = relu.input[0]


def other_attribute(graph: onnx.GraphProto) -> None:
    conv = next(node for node in graph.node if node.op_type == "Conv")
    pads = next(attribute for attribute in conv.attribute if attribute.name == "pads")
    conv.attribute.remove(pads)
    conv.attribute.append(helper.make_attribute("auto_pad", "SAME_UPPER"))


@pytest.mark.parametrize("change", [one_bit, other_edge, other_attribute])
def test_another_model(tiny, change):
    other = changed(tiny, change)
    assert outcome(tiny) == "miss"
    ex = compiled(other)
    assert ex.report.cache.outcome == "miss"
    check(ex, other)


def name_nodes(graph: onnx.GraphProto) -> None:
    for at, node in enumerate(graph.node):
        node.name = f"node {at}"


def rename_inside(graph: onnx.GraphProto) -> None:
    outer = {value.name for value in [*graph.input, *graph.output]}
    rename = lambda name: name if name in outer or not name else f"new_{name}"  # noqa: E731
    for node in graph.node:
        node.doc_string = "text"
        node.input[:] = [rename(name) for name in node.input]
        node.output[:] = [rename(name) for name in node.output]
    for tensor in graph.initializer:
        tensor.name = rename(tensor.name)
    del graph.value_info[:]


def test_names_of_values_do_not_matter_but_those_of_inputs_and_nodes_do(tiny):
    def reorder(graph: onnx.GraphProto) -> None:
        initializers = list(graph.initializer)
        del graph.initializer[:]
        graph.initializer.extend(reversed(initializers))

    def rename_input(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            node.input[:] = ["picture" if name == "image" else name for name in node.input]
        next(value for value in graph.input if value.name == "image").name = "picture"

    def rename_node(graph: onnx.GraphProto) -> None:
        graph.node[0].name = "first"

    tiny = changed(tiny, name_nodes)
    assert outcome(tiny) == "miss"
    for change in (rename_inside, reorder):
        ex = compiled(changed(tiny, change))
        assert ex.report.cache.outcome == "hit"
        check(ex, tiny)
    assert outcome(changed(tiny, rename_input)) == "miss"
    renamed = compiled(changed(tiny, rename_node))
    assert renamed.report.cache.outcome == "miss" and "first" in renamed.report.explain()


# --- files that cannot be used ------------------------------------------------------------------------


def cache_file(folder: Path) -> Path:
    (path,) = folder.glob("*.mxcache")
    return path


def regions_of(data: bytes) -> dict[str, int]:
    """A byte of each part of a cache file."""
    entries = Container(data).entries
    header_end = max(data[: entries[0].offset].rfind(b"}"), 0)
    places = {"magic": 3, "version": 9, "header length": 12, "digest": 20, "header": 60}
    assert header_end + 1 < entries[0].offset
    places["padding"] = header_end + 1
    for entry in entries:
        for kind in ("json", "bytes", "program", "constant", "region", "weights"):
            if entry.kind == kind and entry.length:
                places[kind] = entry.offset + entry.length // 2
    return places


@pytest.mark.parametrize("weights, packed", [({"region", "weights"}, True), ({"program", "constant"}, False)])
def test_every_part_that_is_damaged(tiny, cache_folder, weights, packed):
    """Refused with a reason, made again with the right answer, and read the next time."""
    assert outcome(tiny, packed_weights=packed) == "miss"
    good = cache_file(cache_folder).read_bytes()
    places = regions_of(good)
    assert set(places) >= {"magic", "digest", "header", "padding", "json", "bytes"} | weights
    reasons = {}
    for part, at in places.items():
        data = bytearray(good)
        data[at] ^= 0x10
        cache_file(cache_folder).write_bytes(data)
        ex = compiled(tiny, packed_weights=packed)
        assert ex.report.cache.outcome == "miss", part
        reasons[part] = ex.report.cache.reason
        assert cache_file(cache_folder).read_bytes() != bytes(data)
    check(ex, tiny)
    assert outcome(tiny) == "hit"
    assert all(reasons.values()), reasons
    assert all("digest" in reasons[part] for part in weights) and "version" in reasons["version"]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.9, 0.9999])
def test_truncated(tiny, cache_folder, share):
    compiled(tiny)
    path = cache_file(cache_folder)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    ex = compiled(tiny)
    assert ex.report.cache.reason
    check(ex, tiny)
    assert outcome(tiny) == "hit"


def test_what_else_lies_under_this_name(tiny, cache_folder):
    compiled(tiny)
    path = cache_file(cache_folder)
    other = path.with_name("other")
    compiled(tiny, layouts="plain")
    next(file for file in cache_folder.glob("*.mxcache") if file != path).rename(other)
    reasons = []
    for put in (
        lambda: path.write_bytes(pickle.dumps([1])),
        lambda: (path.unlink(), path.symlink_to(other)),
        lambda: (path.unlink(), other.rename(path)),
    ):
        put()
        ex = compiled(tiny)
        reasons.append(ex.report.cache.reason)
        assert outcome(tiny) == "hit"
    check(ex, tiny)
    assert reasons == [
        "not a cache file of tvm_mxplan",
        "a link, not a plain file",
        "made for another model or other settings",
    ]
    path.unlink()
    path.mkdir()
    ex = compiled(tiny)
    assert "not a plain file; not stored: cannot be written" in ex.report.cache.reason
    check(ex, tiny)


def test_content_that_this_build_does_not_understand(tiny, cache_folder, monkeypatch):
    """Digests and fingerprint hold, as they would if a change forgot to count the schema up."""
    strange = [container.Entry("json", "artifact", b'{"tree": 3}')]
    with monkeypatch.context() as patch:
        patch.setattr(compile_cache, "entries_of", lambda *_: strange)
        compiled(tiny)
    ex = compiled(tiny)
    assert "its content cannot be used" in ex.report.cache.reason
    check(ex, tiny)
    assert outcome(tiny) == "hit"


# --- folders that cannot be used ----------------------------------------------------------------------


@pytest.mark.parametrize("function", ["pwrite", "fsync"])
def test_a_full_disk(tiny, cache_folder, monkeypatch, function):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(container.os, function, full)
        ex = compiled(tiny)
    assert ex.report.cache.reason == "no such file; not stored: cannot be written (No space left on device)"
    assert list(cache_folder.glob("*.mxcache")) == list(cache_folder.glob(".partial*")) == []
    check(ex, tiny)


def test_a_folder_that_is_only_read(tiny, cache_folder, monkeypatch):
    compiled(tiny)

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", read_only)
    monkeypatch.setattr(os, "utime", read_only)
    assert outcome(tiny) == "hit"
    ex = compiled(tiny, layouts="plain")
    assert "not stored: cannot be written (Read-only file system)" in ex.report.cache.reason
    check(ex, tiny)


@pytest.mark.parametrize("folder", ["relative/cache", "/proc/cache", "/dev/null"])
def test_folders_that_cannot_be(tiny, monkeypatch, tmp_path, folder):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", folder)
    ex = compiled(tiny)
    assert ex.report.cache.outcome in ("miss", "bypassed") and ex.report.cache.reason
    check(ex, tiny)
    assert list(tmp_path.iterdir()) == []


def test_the_default_folder_is_in_the_users_cache_home(tmp_path, monkeypatch):
    monkeypatch.delenv("TVM_MXPLAN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert compile_cache.default_store().folder == tmp_path / "xdg" / "tvm_mxplan"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert compile_cache.default_store().folder == tmp_path / ".cache" / "tvm_mxplan"


def test_the_limit_of_the_environment(tiny, monkeypatch):
    monkeypatch.setenv("TVM_MXPLAN_CACHE_BYTES", "100")
    assert "more than the cache may hold, 100" in compiled(tiny).report.cache.reason


def test_bypassed_where_passes_are_watched_or_off(tiny, monkeypatch):
    from tvm_mxplan.report.inspection import RelaxDump

    compiled(tiny)
    with tvm.transform.PassContext(instruments=[dump := RelaxDump()]):
        assert outcome(tiny) == "bypassed"
    assert "mxplan_onednn" in dump.text
    monkeypatch.setenv("TVM_MXPLAN_DISABLE", "1")
    report = tvm_mxplan.compile(tiny, options={"cache": "on_compile"}).report
    assert report.regions == ()
    assert report.cache.reason == "TVM_MXPLAN_DISABLE is set"


def test_a_model_file_that_changes_while_it_is_compiled(tiny, tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    onnx.save(tiny, path)
    real = relax.build

    def build_and_touch(*args: object, **kwargs: object) -> object:
        onnx.save(changed(tiny, one_bit), path)
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(relax, "build", build_and_touch)
        report = compiled(path).report
    assert "not stored: the model's file changed while it was compiled" in report.cache.reason
    assert outcome(tiny) == "miss"


def test_errors_are_the_same_with_a_cache(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"\x0a\xff\xff")
    for model in (tmp_path / "missing.onnx", tmp_path / "broken.onnx", 3):
        messages = []
        for cache in ("on_compile", "disabled"):
            with pytest.raises(tvm_mxplan.InvalidInputError) as error:
                tvm_mxplan.compile(model, options={"cache": cache})
            messages.append(str(error.value))
        assert messages[0] == messages[1]


# --- processes ----------------------------------------------------------------------------------------

COMPILE = """
import sys, numpy as np, tvm_mxplan
ex = tvm_mxplan.compile(sys.argv[1], options={"cache": "on_compile"})
np.save(sys.argv[3], ex(np.load(sys.argv[2]))[0].numpy())
"""


def test_killed_half_way_and_two_at_once(tiny, tmp_path, cache_folder):
    onnx.save(tiny, tmp_path / "tiny.onnx")
    np.save(tmp_path / "x.npy", X)
    arguments = [str(tmp_path / "tiny.onnx"), str(tmp_path / "x.npy")]
    die = (
        "import os, signal\nfrom tvm_mxplan.cache import container\n"
        "container.os.pwrite = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", die + COMPILE, *arguments, str(tmp_path / "no.npy")])
    assert killed.returncode == -signal.SIGKILL
    assert len(list(cache_folder.glob(".partial-*"))) == 1
    both = [
        subprocess.Popen([sys.executable, "-c", COMPILE, *arguments, str(tmp_path / f"{n}.npy")])
        for n in range(2)
    ]
    assert [process.wait(600) for process in both] == [0, 0]
    assert list(cache_folder.glob(".partial-*")) == []
    ex = compiled(tmp_path / "tiny.onnx")
    assert ex.report.cache.outcome == "hit"
    for n in range(2):
        np.testing.assert_array_equal(np.load(tmp_path / f"{n}.npy"), ex(X)[0].numpy())
