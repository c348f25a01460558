"""scripts/onnx_nodes: cases end as they should, crashes end nothing, and we lose nothing TVM passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from _onnx import nodes, process, worker
from _onnx.cases import KINDS, Case, all_cases, node_cases
from _onnx.process import Ending
from _shared import workers

LOST_ONCE = (
    "test_compress_default_axis",
    "test_optional_get_element_optional_tensor",
    "test_shape_clip_end",
    "test_shape_start_1_end_2",
    "test_split_to_sequence_nokeepdims",
    "test_squeeze_negative_axes",
    "test_unsqueeze_two_axes",
)
"""Cases that TVM alone passes and we did not: one of each kind."""

MODULES = ("compress", "optionalgetelement", "shape", "splittosequence", "squeeze", "unsqueeze")


def table(text: str, first: str) -> dict[str, list[str]]:
    """The rows of the table whose header begins with ``first``, by their first cells."""
    blocks = [block for block in text.split("\n\n") if block.startswith(f"| {first}")]
    rows = [line.strip("| ").split(" | ") for line in blocks[0].splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


OPERANDS_OF_A_CALL = {
    "reduce_log_sum_exp": "test_reduce_log_sum_exp_negative_axes_keepdims_random",
    "reducemax": "test_reduce_max_empty_set",
    "pad": "test_constant_pad_negative_axes",
    "split": "test_split_zero_size_splits_opset18",
    "topk": "test_top_k_same_values_2d",
    "onehot": "test_onehot_negative_indices",
    "cumprod": "test_cumprod_1d_reverse_exclusive",
    "nonmaxsuppression": "test_nonmaxsuppression_two_classes",
    "resize": "test_resize_tf_crop_and_resize_extrapolation_value",
    "maxpool": "test_maxpool_with_argmax_2d_precomputed_strides",
}
"""Cases whose axes, amounts and thresholds are inputs of the model: one of each kind, by its module."""


@pytest.mark.slow
@pytest.mark.parametrize("module", OPERANDS_OF_A_CALL)
def test_cases_with_operands_of_a_call(module: str) -> None:
    assert worker.verdict(node_cases(module)[OPERANDS_OF_A_CALL[module]], "ours") == ("pass", "")


MASKED_ROWS = (
    "test_attention_23_boolmask_fullymasked_row_nan_robustness",
    "test_attention_24_fullymasked_qk_matmul_output_mode3_zero",
    "test_attention_causal_boolmask_nan_robustness",
    "test_attention_4d_causal_nonpad_negative_offset_structural_empty",
    "test_attention_local_window_gqa_rank4_mask",
)
"""Attention with rows that see no key, which are 0."""


@pytest.mark.parametrize("name", MASKED_ROWS)
def test_rows_that_see_no_key_are_zero(name: str) -> None:
    assert worker.verdict(node_cases("attention")[name], "ours") == ("pass", "")


@pytest.mark.parametrize("name", LOST_ONCE)
def test_cases_that_were_lost(name: str) -> None:
    assert worker.verdict(node_cases(*MODULES)[name], "ours") == ("pass", "")


def test_what_is_lost_is_said_with_the_reason(monkeypatch, capsys) -> None:
    def endings(engine, _kinds, names, _timeout):
        for name in names:
            lost = engine == "ours" and name == "test_abs"
            yield Ending(name, "wrong" if lost else "pass", "output 0 differs by 3" if lost else "")

    monkeypatch.setattr(nodes, "run_cases", endings)
    monkeypatch.setattr(nodes, "all_cases", lambda _kinds: node_cases("abs", "acosh"))
    assert nodes.main(["--kinds", "node", "--only", "test_abs,test_acosh", "--engines", "tvm,ours"]) == 1
    printed = capsys.readouterr().out
    assert table(printed, "engine")["ours"][:3] == ["3", "2", "1"]
    assert table(printed, "library operators and networks") == {"0": ["0", "0"]}
    assert "1 cases that TVM alone passes" in printed
    assert "- test_abs: wrong: output 0 differs by 3" in printed


WORKER = """
import json, os, sys
for line in sys.stdin:
    name = line.strip()
    if name == "crash":
        os.abort()
    if name == "hang":
        sys.stdin.read()
    print(json.dumps({"name": name, "status": "pass", "reason": ""}), flush=True)
"""


def test_a_worker_that_crashes_or_hangs_ends_one_case_only(monkeypatch) -> None:
    def start(_engine, _kinds):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([sys.executable, "-c", WORKER], **pipes)

    monkeypatch.setattr(process, "_start", start)
    ask = workers.ask
    brief = lambda worker, name, timeout: ask(worker, name, 1.0 if name == "hang" else timeout)  # noqa: E731
    monkeypatch.setattr(workers, "ask", brief)
    names = ["a", "crash", "b", "hang", "c"]
    endings = list(process.run_cases("ours", ["node"], names, 600.0))
    assert [ending.name for ending in endings] == names
    assert [ending.status for ending in endings] == ["pass", "crash", "pass", "timeout", "pass"]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([np.float32([1, 2])], ""),
        ([np.float32([1, 2]), np.float32(1)], "2 outputs, expected 1"),
        ([np.float32([[1, 2]])], "shape (1, 2), expected (2,)"),
        ([np.float64([1, 2])], "is float64, expected float32"),
        ([np.float32([1, 2.01])], "differs by 0.01"),
        ([np.float32([1, np.nan])], "differs"),
    ],
)
def test_types_shapes_and_numbers_are_compared(answers, reason) -> None:
    case = Case("case", "node", 1e-3, 1e-7)
    found = worker.difference(answers, [np.float32([1, 2])], case)
    assert reason in found
    assert bool(found) == bool(reason)


def test_cases_with_types_that_numpy_lacks_are_arrays() -> None:
    cases = node_cases("cast")
    (inputs, outputs), *_ = cases["test_cast_BFLOAT16_to_FLOAT"].sets()
    assert not any(isinstance(value, onnx.TensorProto) for value in (*inputs, *outputs))
    assert str(inputs[0].dtype) == "bfloat16"


@pytest.mark.slow
def test_a_light_network_is_a_case() -> None:
    cases = all_cases(["real"])
    assert len(cases) == 9
    network = cases["test_squeezenet"]
    ((inputs, outputs),) = network.sets()
    assert [array.shape for array in inputs] == [(1, 3, 224, 224)]
    assert np.unique(inputs[0]).size > 100_000
    assert outputs[0].shape == (1, 1000, 1, 1)
    assert worker.verdict(network, "ours") == ("pass", "")
    assert nodes.library({"one": network}, {"ours": {"one": Ending("one", "pass", "")}}).endswith("| 1 | 1 |")


FOREVER = 1e6
"""Seconds for a case: how busy a machine is decides nothing."""


@pytest.mark.slow
def test_the_tables_of_engines_that_run(capsys: pytest.CaptureFixture[str]) -> None:
    """A few cases on both, of the kinds that are read from files."""
    kinds, only = "simple,pytorch-operator", "test_operator_conv,test_operator_add_broadcast"
    arguments = ["--kinds", kinds, "--only", only, "--engines", "tvm,ours", "--timeout", str(FOREVER)]
    assert nodes.main(arguments) == 0
    printed = capsys.readouterr().out
    assert {"Conv", "Add"} <= table(printed, "operator").keys()
    assert int(table(printed, "engine")["tvm"][1]) > 1


@pytest.mark.slow
def test_nothing_is_lost() -> None:
    """One case in thirteen of all there are; TVM alone is asked for those that we do not pass."""
    names = list(all_cases(KINDS))[::13]
    ours = {one.name: one for one in process.run_cases("ours", KINDS, names, FOREVER)}
    failed = {name: one for name, one in ours.items() if one.status != "pass"}
    assert len(failed) < len(names) / 2
    theirs = {one.name: one for one in process.run_cases("tvm", KINDS, list(failed), FOREVER)}
    assert theirs.keys() == failed.keys()
    assert not nodes.lost({"tvm": theirs, "ours": failed})
