"""Calls a second of instances side by side: the table, and a run of two processes of our engine."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.whole import throughput


class Played:
    """A worker whose calls take a stated time."""

    def __init__(self, latency: float) -> None:
        self.latency = latency

    def ask(self, do: str, timeout: float, iterations: int, warm_up: int) -> dict[str, list[float]]:
        assert do == "run"
        return {"latencies": [self.latency] * iterations}


def test_a_rate_is_all_calls_over_the_longest_time() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert throughput.Fleet([Played(0.1), Played(0.2)], 10).rate(pool) == pytest.approx(20 / 2.0)


def test_rows_hold_the_first_engine_against_the_better_peer() -> None:
    rates = {
        ("ours", "instances"): 20.0,
        ("ours", "one"): 16.0,
        ("a", "instances"): 10.0,
        ("a", "one"): 8.0,
        ("b", "instances"): 5.0,
        ("b", "one"): 12.0,
    }
    first, *others = throughput.rows("net", rates)
    assert first == "| net | ours | 20.0 | 16.0 | 1.25 | 0.500, 0.750 |"
    assert others == ["| net | a | 10.0 | 8.0 | 1.25 |  |", "| net | b | 5.0 | 12.0 | 0.42 |  |"]


@pytest.mark.slow
def test_our_engine_runs_in_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime", reason="the reference of answers")
    arguments = ["--models", "tiny", "--engines", "ours", "--rounds", "1", "--seconds", "0.01"]
    assert throughput.main(arguments) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| tiny")]
    assert all(float(cell) > 0 for cell in row.split("|")[3:6])


def test_names_that_do_not_exist_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        throughput.main(["--models", "resnet51"])
    assert "'resnet51' is not one of" in capsys.readouterr().err
