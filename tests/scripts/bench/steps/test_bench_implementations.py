"""The table of what could run a convolution."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "scripts"))

from _bench.steps import implementations

from tvm_mxplan.byoc.onednn.backend import OneDNN

LAYERS = ("1x8x16x9:1:1:swish", "2x3x8x12:3:2:relu")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_each_layer_runs_in_every_implementation(dtype: str, capsys: pytest.CaptureFixture[str]) -> None:
    if missing := OneDNN().lacks("int8" if dtype == "uint8" else dtype):
        pytest.skip(missing)
    arguments = ["--layers", ",".join(LAYERS), "--dtype", dtype, "--rounds", "1"]
    assert implementations.main(arguments) == 0
    rows = [re.split(r" *\| *", row)[1:-1] for row in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == list(LAYERS)
    for _, chosen, spent, best, least, ratio, every in rows:
        times = {name: (int(us), int(cost)) for name, us, _, cost in map(str.split, every.split("; "))}
        assert (str(times[chosen][0]), str(times[best][0])) == (spent, least)
        assert times[chosen][1] == min(cost for _, cost in times.values()) and float(ratio) >= 1.0
        assert all(name.partition(":")[0] != "ref" for name in times)


@pytest.mark.parametrize("text", ["", "1x8x16x9", "1x8x16x9:1:1", "1x8xax9:1:1:relu", "1x8x16x9:1:0:relu"])
def test_text_that_is_no_layer_is_named_before_others_run(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=f"bench: '{text}' is no layer; one is 1x64x64x56:1:1:relu"):
        implementations.main(["--layers", f"{LAYERS[0]},{text}"])
    assert capsys.readouterr().out == ""


def test_a_layer_that_onednn_does_not_compute_is_named() -> None:
    with pytest.raises(SystemExit, match="bench: 1x8x16x9:1:1:nothing: "):
        implementations.main(["--layers", "1x8x16x9:1:1:nothing"])
