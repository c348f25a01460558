"""scripts/bench gpu: no figure without a GPU, and a row for each case where there is one (played here)."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.gpu import answers, engines, kernels, main, starts, timing
from _bench.gpu.cases import Case
from _bench.gpu.engines import Engine, Runner
from _shared.half_models import half

from tvm_mxplan.byoc import registry

GPU_PROPERTIES = '{"deviceName": "a GPU"}'


def test_without_a_gpu_it_says_that_there_is_no_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry.engine("cudnn"), "absent", lambda: "no GPU is here (the driver knows none)")
    assert main.main([]) == main.NO_GPU != 0
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "bench gpu: no GPU is here (the driver knows none); no figure exists without a GPU\n"


@dataclass
class Played:
    """Engines whose calls take what they are said to, by a clock of their own, and add an error."""

    now: float = 0.0
    seconds: dict[str, float] = field(default_factory=lambda: {"ours": 0.001, "torch": 0.002, "tvm": 0.004})
    compiled_s: float = 12.5
    added: dict[str, Callable[[int], float]] = field(default_factory=dict)
    """To the right answer, by the number of the call."""
    broken: dict[str, str] = field(default_factory=dict)
    """The function in which an engine fails: ``prepare`` or ``run``."""
    seen: list[Case] = field(default_factory=list)
    called: list[str] = field(default_factory=list)

    def engine(self, name: str) -> Engine:
        def prepare(case: Case) -> Runner:
            assert case.device.read_text() == GPU_PROPERTIES and case.folder.is_dir()
            self.seen.append(case)
            self.now += self.compiled_s
            if self.broken.get(name) == "prepare":
                raise RuntimeError(f"{name} has no such operator\nand more lines")
            right, calls = right_of(case), [0]

            def run() -> list[np.ndarray]:
                self.called.append(name)
                self.now += self.seconds[name]
                calls[0] += 1
                if self.broken.get(name) == "run" and calls[0] > 4:
                    raise RuntimeError("an illegal address")
                return [one + self.added.get(name, lambda _: 0.0)(calls[0]) for one in right]

            return Runner(run, lambda: None, lambda answer: answer)

        return Engine(name, prepare, ours=name.startswith("ours"))


def right_of(case: Case) -> list[np.ndarray]:
    return [np.linspace(1.0, 2.0, 10 * case.batch).reshape(case.batch, 10)]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    """A GPU, and engines on it."""
    engine = registry.engine("cudnn")
    monkeypatch.setattr(engine, "absent", lambda: "")
    monkeypatch.setattr(engine, "device_properties", lambda: GPU_PROPERTIES)
    play = Played()
    for name in play.seconds:
        monkeypatch.setitem(engines.ENGINES, name, play.engine(name))
    monkeypatch.setattr(timing, "clock", lambda: play.now)
    monkeypatch.setattr(answers, "right_answer", right_of)
    return play


def table(out: str) -> list[dict[str, str]]:
    header, rule, *lines = (line.strip("| ").split(" | ") for line in out.splitlines())
    assert rule == ["---", *["---:"] * (len(header) - 1)]
    return [dict(zip(header, line, strict=True)) for line in lines]


TINY = ["--models", "squeezenet", "--kinds", "f16", "--batch", "1", "--rounds", "3"]


@pytest.mark.slow
def test_each_case_is_a_row(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--models", "squeezenet", "--batch", "1,2", "--kinds", "f16,f32", "--engines", "ours,torch,tvm"]
    assert main.main(given) == 0
    output = capsys.readouterr()
    found = table(output.out)
    assert [(row["model"], row["batch"]) for row in found] == [
        ("squeezenet f16", "1"), ("squeezenet f16", "2"), ("squeezenet f32", "1"), ("squeezenet f32", "2"),
    ]  # fmt: skip
    assert found[0] == {
        "model": "squeezenet f16", "batch": "1", "ours ms": "1.000", "torch ms": "2.000", "tvm ms": "4.000",
        "ours / torch": "0.500", "ours / tvm": "0.250", "ours error": "0.0e+00", "torch error": "0.0e+00",
        "tvm error": "0.0e+00", "ours compile s": "12.5", "torch compile s": "12.5", "tvm compile s": "12.5",
    }  # fmt: skip
    assert [case.kind for case in played.seen] == ["f16"] * 6 + ["f32"] * 6
    told = "bench gpu: squeezenet f16 batch 2: tvm: prepared in 12.5 s, first call 4.0 ms, error 0.0e+00"
    assert told in output.err.splitlines()


def test_engines_take_turns_in_bursts_of_one_length(played: Played) -> None:
    main.main([*TINY, "--engines", "ours,torch"])
    turns = [(name, len(list(calls))) for name, calls in itertools.groupby(played.called)]
    assert [name for name, _ in turns] == ["ours", "torch"] * 5, "judged, tried, three rounds"
    assert turns[:4] == [("ours", 3), ("torch", 3)] * 2
    for name, calls in turns[4:]:
        assert calls * played.seconds[name] == pytest.approx(timing.BURST_SECONDS, rel=0.02)


def test_a_peer_that_prepares_too_long_is_a_dash(
    played: Played, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(case: Case) -> Runner:
        while True:
            try:
                time.sleep(60)
            except Exception:  # as torch.compile does with what a choice of its own throws
                continue

    monkeypatch.setitem(engines.ENGINES, "torch", Engine("torch", prepare))
    assert main.main([*TINY, "--engines", "ours,torch,tvm", "--prepare-seconds", "0.5"]) == 0
    told = capsys.readouterr()
    (row,) = table(told.out)
    assert (row["ours ms"], row["torch ms"], row["tvm ms"]) == ("1.000", "-", "4.000")
    assert "bench gpu: squeezenet f16 batch 1: torch: not prepared in 0.5 s\n" in told.err


def test_a_peer_that_fails_is_a_dash_and_a_reason(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    played.broken = {"torch": "prepare", "tvm": "run"}
    assert main.main([*TINY, "--engines", "ours,torch,tvm"]) == 0
    told = capsys.readouterr()
    (row,) = table(told.out)
    assert (row["ours ms"], row["torch ms"], row["ours / torch"], row["tvm ms"]) == ("1.000", "-", "-", "-")
    assert (row["torch error"], row["tvm error"]) == ("-", "0.0e+00")
    where = "bench gpu: squeezenet f16 batch 1"
    assert f"{where}: torch: RuntimeError: torch has no such operator\n" in told.err
    assert f"{where}: tvm: RuntimeError: an illegal address\n" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("broken", ["prepare", "run"])
def test_ours_without_an_answer_is_the_status(
    played: Played, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    played.broken = {"ours": broken}
    assert main.main([*TINY, "--engines", "ours,torch"]) == 1
    told = capsys.readouterr()
    (row,) = table(told.out)
    assert (row["ours ms"], row["torch ms"], row["ours / torch"]) == ("-", "2.000", "-")
    assert "Traceback" in told.err


@pytest.mark.parametrize(
    "kind, name, error, status",
    [
        ("f16", "ours", 0.01, 0),
        ("f16", "ours", 0.5, 1),
        ("f32", "ours", 0.01, 1),
        ("f16", "ours", float("nan"), 1),
        ("f16", "torch", 0.5, 0),
    ],
)
def test_a_wrong_answer_has_no_time(
    played: Played, capsys: pytest.CaptureFixture[str], kind: str, name: str, error: float, status: int
) -> None:
    """The third answer counts as the first does."""
    played.added[name] = lambda call: error if call == 3 else 0.0
    assert main.main(["--models", "squeezenet", "--kinds", kind, "--batch", "1"]) == status
    told = capsys.readouterr()
    (row,) = table(told.out)
    wrong = error != 0.01 or kind == "f32"
    assert (row[f"{name} ms"] == "-") is wrong and row[f"{name} error"] != "0.0e+00"
    assert (f"{name}: wrong: a relative L2 of" in told.err) is wrong
    assert ("its first and third answer differ in bits" in told.err) is (name == "ours")


def test_no_case_begins_when_the_time_is_over(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--models", "squeezenet,mobilenet_v2", "--kinds", "f16", "--batch", "1", "--seconds", "20"]
    assert main.main(given) == 0
    told = capsys.readouterr()
    assert [row["model"] for row in table(told.out)] == ["squeezenet f16"]
    assert "left out for want of time: mobilenet_v2 f16 batch 1" in told.err


def test_a_row_is_there_when_its_case_ends(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    def ends(case: Case) -> list[np.ndarray]:
        if case.batch == 2:
            raise KeyboardInterrupt
        return right_of(case)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(answers, "right_answer", ends)
        main.main(["--models", "squeezenet", "--kinds", "f16", "--batch", "1,2"])
    assert [row["batch"] for row in table(capsys.readouterr().out)] == ["1"]


def test_what_starts_take_is_a_column(
    played: Played, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "_first_answers", lambda case, found: {"cold": 9.8, "library": 0.654})
    assert main.main([*TINY, "--starts"]) == 0
    (row,) = table(capsys.readouterr().out)
    assert [row[f"{way} s"] for way in starts.WAYS] == ["9.80", "-", "0.65"]


@pytest.mark.parametrize(
    "given, told",
    [
        (["--models", "nobody"], "'nobody'; expected some of"),
        (["--models", "nobody.onnx"], "nobody.onnx: no such file"),
        (["--kinds", "f8"], "'f8'; expected some of f16,tf32,f32"),
        (["--engines", "ours,theirs"], "'theirs'; expected some of ours,ours_steps,ours_tuned,torch"),
        (["--batch", "one"], "--batch"),
        (["--batch", "0"], "0; expected 1 or more"),
        (["--rounds", "0"], "0; expected 1 or more"),
        (["--seconds", "soon"], "--seconds"),
    ],
)
def test_what_is_not_known_is_refused(
    given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(given)
    assert ended.value.code == 2 and told in capsys.readouterr().err


def test_kernels_without_the_profiler_are_a_line(
    played: Played, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.profiler", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main.main([*TINY, "--kernels"]) == 0
    told = capsys.readouterr()
    assert table(told.out)[0]["ours ms"] == "1.000"
    assert "squeezenet f16 batch 1: ours: its kernels are unknown: ModuleNotFoundError: " in told.err


def test_kernels_are_told_engine_by_engine(
    played: Played, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [kernels.Kernel(100.0 - at, 2.0, f"kernel{at}") for at in range(14)]
    monkeypatch.setattr(kernels, "profiled", lambda runner: found)
    assert main.main([*TINY, "--kernels"]) == 0
    lines = capsys.readouterr().err.splitlines()
    at = lines.index("squeezenet f16 batch 1: ours: 1309.0 us of kernels, 28 launches a call")
    assert lines[at + 1].split() == ["100.0", "us", "x", "2.0", "kernel0"]
    assert lines[at + kernels.MOST + 1] == "  and 2 more kernels"
    assert lines[at + kernels.MOST + 2].startswith("squeezenet f16 batch 1: torch: ")


def test_a_model_in_float16_computes_as_its_float32(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    random = np.random.default_rng(3)
    weights = random.standard_normal((4, 3)).astype("float32")
    nodes = [
        helper.make_node("Cast", ["i"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.float32([0.5]))),
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("i", TensorProto.INT32, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    wide = model.SerializeToString()
    narrow = half(model)
    onnx.checker.check_model(narrow, full_check=True)
    feeds = {"i": random.integers(-3, 4, (2, 4)).astype("int32")}
    answers = [
        ort.InferenceSession(one, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
        for one in (wide, narrow.SerializeToString())
    ]
    assert answers[1].dtype == np.float16
    np.testing.assert_allclose(answers[1], answers[0], rtol=2e-2, atol=2e-2)
