"""The benchmark harness: its statistics, its record, and what it does with engines that misbehave."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.harness import process, statistics, table  # noqa: E402
from _bench.harness.record import summary_records  # noqa: E402
from _bench.inputs import modern  # noqa: E402
from _bench.whole import models  # noqa: E402

needs_onnxruntime = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="needs onnxruntime"
)
QUICK = ["--models", "tiny", "--batch", "2", "--threads", "1", "--starts", "1", "--rounds", "2"]

ZEROS = """
import numpy

class Tensor:
    def __init__(self, value, shared_memory):
        self.data = value

class Core:
    outputs = [0]
    def compile_model(self, path, device, config):
        return self
    def create_infer_request(self):
        return self
    def set_tensor(self, name, tensor):
        pass
    def infer(self):
        pass
    def get_output_tensor(self, index):
        return Tensor(numpy.zeros((2, 10), numpy.float32), True)
"""


def test_percentiles_are_linear_between_ranks():
    assert statistics.median([3, 1, 2]) == 2
    assert statistics.median([4, 1, 2, 3]) == 2.5
    assert statistics.percentile([10, 20], 0.1) == pytest.approx(11)
    assert statistics.percentile([7], 0.9) == 7
    with pytest.raises(ValueError, match="nothing"):
        statistics.median([])


def test_ratio_takes_the_better_peer_of_each_round():
    peers = {"a": [10, 40, 10], "b": [20, 20, 20]}
    ratio = statistics.ratio_to_best([5, 10, 20], peers)
    assert ratio.median == pytest.approx(0.5), "of 5/10, 10/20 and 20/10"
    assert ratio.p10 == pytest.approx(0.5)
    assert ratio.p90 == pytest.approx(1.7)


def test_a_slow_phase_of_the_machine_cancels():
    phases = [1, 1, 8, 8, 1]
    ratio = statistics.ratio_to_best([3 * p for p in phases], {"peer": [4 * p for p in phases]})
    assert (ratio.p10, ratio.median, ratio.p90) == pytest.approx((0.75, 0.75, 0.75))


def test_no_ratio_without_peers_or_rounds():
    assert statistics.ratio_to_best([1.0], {}) is None
    assert statistics.ratio_to_best([], {"peer": []}) is None


def test_geometric_mean():
    assert statistics.geometric_mean([0.5, 2.0]) == pytest.approx(1)
    assert statistics.geometric_mean([]) is None


def test_summary_skips_models_without_a_ratio():
    def record(ratio, threads=1):
        return {"batch": 1, "threads": threads, "ratio": ratio and {"median": ratio}}

    first, second = summary_records([record(0.25), record(None), record(1.0), record(None, threads=2)])
    assert first == {"batch": 1, "threads": 1, "models": 2, "geomean_ratio": pytest.approx(0.5)}
    assert second == {"batch": 1, "threads": 2, "models": 0, "geomean_ratio": None}


@pytest.mark.slow
@needs_onnxruntime
def test_two_engines_end_to_end(tmp_path):
    pytest.importorskip("openvino")
    document = _run(tmp_path, "--engines", "onnxruntime,openvino", "--iterations", "5")

    assert document["environment"]["cpu"] and document["environment"]["onnxruntime"]
    (record,) = document["results"]
    assert (record["model"], record["batch"], record["threads"]) == ("tiny", 2, 1)
    for engine in record["engines"].values():
        assert engine["status"] == "ok", engine["detail"]
        assert engine["relative_l2"] < 1e-4
        assert engine["iterations"] == 5
        assert len(engine["round_medians_ms"]) == 2
        spread = engine["latency_ms"]
        assert 0 < spread["p10"] <= spread["median"] <= spread["p90"]
        assert engine["load_s"] > 0 and engine["import_s"] > 0
        assert engine["peak_mib"] > engine["base_mib"] > 0
    medians = [record["engines"][name]["round_medians_ms"] for name in ("onnxruntime", "openvino")]
    by_round = [own / peer for own, peer in zip(*medians, strict=True)]
    assert record["ratio"]["median"] == pytest.approx(sum(by_round) / 2)
    (summary,) = document["summary"]
    assert summary["geomean_ratio"] == pytest.approx(record["ratio"]["median"])

    text = (tmp_path / "out.md").read_text()
    assert "## Batch 2, 1 thread\n" in text
    assert "| tiny | " in text and "| geometric mean of 1 | " in text
    assert text == table.to_markdown(document)


@pytest.mark.slow
@needs_onnxruntime
@pytest.mark.parametrize(
    ("source", "status", "detail"),
    [
        (
            "raise ModuleNotFoundError('No module named openvino')",
            "not installed",
            "No module named openvino",
        ),
        ("import os; os._exit(3)", "died", "status 3"),
        ("raise RuntimeError('no such device')", "failed", "RuntimeError: no such device"),
        (ZEROS, "wrong", "relative L2 1.0e+00"),
        ("import signal; signal.pause()", "timed out", "within 2 s"),
    ],
    ids=["missing", "dies", "raises", "lies", "hangs"],
)
def test_a_broken_engine_is_a_row_and_the_others_are_timed(tmp_path, monkeypatch, source, status, detail):
    """The one that hangs is waited for briefly, the others as long as a busy machine lets them take."""
    (tmp_path / "openvino.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ask = process.Worker.ask

    def patience(worker, do, timeout, **arguments):
        hangs = status == "timed out" and worker._spec.engine == "openvino"
        return ask(worker, do, 2 if hangs else timeout, **arguments)

    monkeypatch.setattr(process.Worker, "ask", patience)
    document = _run(tmp_path, "--engines", "onnxruntime,openvino", "--iterations", "2", "--timeout", "600")

    (record,) = document["results"]
    broken = record["engines"]["openvino"]
    assert broken["status"] == status
    assert detail in broken["detail"]
    assert broken["latency_ms"] is None
    assert record["engines"]["onnxruntime"]["latency_ms"] is not None
    assert record["ratio"] is None
    assert f"openvino: {status}: " in (tmp_path / "out.md").read_text()


@pytest.mark.slow
@needs_onnxruntime
def test_an_engine_that_is_not_installed_has_one_line(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('No module named torch')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    document = _run(tmp_path, "--engines", "onnxruntime,torch", "--iterations", "2", "--batch", "1,2")

    assert [record["engines"]["torch"]["status"] for record in document["results"]] == ["not installed"] * 2
    assert all(record["engines"]["onnxruntime"]["latency_ms"] for record in document["results"])
    assert (tmp_path / "out.md").read_text().count("No module named torch") == 1


@needs_onnxruntime
@pytest.mark.slow
def test_torch_compiles_the_same_model(tmp_path):
    pytest.importorskip("torch")
    document = _run(tmp_path, "--engines", "onnxruntime,torch", "--iterations", "2")
    (record,) = document["results"]
    assert record["engines"]["torch"]["status"] == "ok", record["engines"]["torch"]["detail"]
    assert record["engines"]["torch"]["relative_l2"] < 1e-5


@needs_onnxruntime
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_run(tmp_path, number):
    endless = ["--rounds", "100000", "--engines", "onnxruntime"]
    command = [sys.executable, "-m", "_bench", "models", *QUICK, *endless]
    path = os.pathsep.join([str(SCRIPTS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    variables = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": path}
    run = subprocess.Popen(
        command,
        env=variables,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # What a shell starts in the background ignores SIGINT, and so would this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        _wait(lambda: list(tmp_path.glob("*/answer_onnxruntime.npz")) or run.poll() is not None)
        assert _processes_about(tmp_path)
        run.send_signal(number)
        assert run.wait() != 0
    finally:
        run.kill()
        run.wait()
    _wait(lambda: not _processes_about(tmp_path))
    assert number == signal.SIGKILL or not list(tmp_path.glob("bench_models_*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "resnet51"], "'resnet51' is not one of"),
        (["--engines", "reference"], "'reference' is not one of"),
        (["--batch", "0"], "'0' is not a positive number"),
        (["--beside", "-1"], "argument --beside: '-1' is not a number from 0 on"),
        (["--zoo", "modern", "--models", "resnet50"], "'resnet50' is not one of mobilenetv3_small_100"),
        (["--zoo", "modern", "--batch", "3"], "the modern zoo has 1, 8, not 3"),
    ],
)
def test_wrong_arguments_are_named(capsys, arguments, message):
    with pytest.raises(SystemExit):
        models.main(arguments)
    assert message in capsys.readouterr().err


def test_more_threads_than_cpus_are_refused(capsys):
    assert models.main(["--threads", "4096"]) == 1
    assert "4096 is more than" in capsys.readouterr().err


@needs_onnxruntime
def test_exported_networks_are_timed_by_processor_time(tmp_path):
    """A file that the folder has is not exported again, so this one stands in for the network."""
    from onnx import TensorProto, helper, save_model

    name, inputs = "lstm", modern.inputs("lstm", 1)
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, inputs["x"].shape)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, inputs["x"].shape)
    graph = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], name, [image], [result])
    (tmp_path / "modern").mkdir()
    opset = [helper.make_opsetid("", 17)]
    save_model(
        helper.make_model(graph, opset_imports=opset, ir_version=9), tmp_path / "modern" / f"{name}_old.onnx"
    )
    document = _run(
        tmp_path,
        *("--zoo", "modern", "--models", name, "--batch", "1", "--folder", str(tmp_path)),
        *("--exporter", "old", "--engines", "onnxruntime", "--processor", "--iterations", "5"),
    )
    engine = document["results"][0]["engines"]["onnxruntime"]
    assert engine["status"] == "ok" and engine["relative_l2"] < 1e-4
    assert engine["iterations"] == 1 and len(engine["round_medians_ms"]) == 2
    assert "Processor time of all threads in ms" in (tmp_path / "out.md").read_text()


def test_a_network_that_cannot_be_exported_is_one_line(tmp_path, capsys):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ModuleNotFoundError: No module named torch' >&2\nexit 1\n")
    python.chmod(0o755)
    arguments = ["--zoo", "modern", "--models", "gru", "--batch", "1", "--threads", "1"]
    assert models.main([*arguments, "--folder", str(tmp_path), "--exporting-python", str(python)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert "gru at batch 1" in last and "No module named torch" in last and "[torch_models]" in last


@pytest.mark.parametrize("zoo", modern.ZOOS)
def test_inputs_of_every_exported_network_are_of_its_shapes(zoo):
    networks, batches = modern.ZOOS[zoo]
    for batch in batches:
        for network in networks(batch):
            if batch > 1 and network.kind == "cached":
                continue  # hundreds of MiB
            found = modern.inputs(network.label, batch, zoo)
            assert {of: array.shape for of, array in found.items()} == dict(network.inputs)
            assert all(array.shape[0] == batch for array in found.values())
            if "mask" in found:
                assert (found["mask"].sum(1) > 0).all() and not found["mask"].all()


def _run(directory, *arguments):
    out, markdown = directory / "out.json", directory / "out.md"
    assert models.main([*QUICK, *arguments, "--json", str(out), "--markdown", str(markdown)]) == 0
    return json.loads(out.read_text())


def _wait(condition):
    """Waits as long as it takes; what never comes is told by ``faulthandler_timeout``."""
    while not condition():
        time.sleep(0.05)


def _processes_about(directory):
    """Ids of the workers whose files are in ``directory``."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"_bench.harness.worker" in command and str(directory).encode() in command:
            found.append(folder.name)
    return found
