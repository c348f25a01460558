"""Differences that make another compilation of a model, and those that do not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
import tvm
from compile_outcomes import X, changed, check, compiled, one_bit, other_attribute, other_edge, outcome
from onnx import helper, numpy_helper
from tvm import relax

import tvm_mxplan
from tvm_mxplan import opcheck
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.execution.threads import with_threads


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
    assert outcome(tiny) == "miss"
    with with_threads(library.threads() + 1):
        assert (outcome(tiny), outcome(tiny)) == ("miss", "hit")


def test_every_option_says_whether_it_matters():
    options = tvm_mxplan.Options()
    outside = {"cache", "opcheck", "opcheck_folder", "packed_weights", "primitive_cache", "weights_cache"}
    outside |= {"dump_after", "dump_folder", "machine"}  # what it states is a fact of its own
    assert set(options.fingerprinted()) == set(options.__dataclass_fields__) - outside


@pytest.mark.slow
def test_another_target_version_thread_count_or_pass_context(tiny, monkeypatch):
    from tvm_mxplan.cache.key import surroundings

    assert outcome(tiny) == "miss"
    ex = tvm_mxplan.compile(tiny, "dnnl, llvm -mcpu=x86-64-v3", options={"cache": "on_compile"})
    assert ex.report.cache.outcome == "miss"
    with tvm.transform.PassContext(opt_level=1):
        assert outcome(tiny) == "miss"
    for setting in (
        {"disabled_pass": ["FuseOps"]},
        {"required_pass": ["FuseOps"]},
        {"config": {"relax.backend.use_cuda_graph": True}},
    ):
        with tvm.transform.PassContext(**setting):
            assert outcome(tiny) == "miss", setting
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
