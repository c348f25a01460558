"""scripts/bench: every benchmark under its name, and a clear word on names that are none."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from _bench.__main__ import BENCHMARKS, main  # noqa: E402


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_name_has_a_help_of_its_own(name: str, capsys) -> None:
    assert callable(importlib.import_module(f"_bench.{BENCHMARKS[name][0]}").main)
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0 and f"usage: bench {name}" in capsys.readouterr().out


def test_names_are_listed_and_others_refused(capsys) -> None:
    assert main(["--help"]) == 0 and all(f"  {name} " in capsys.readouterr().out for name in ["models"])
    assert main(["model"]) == 2
    assert "there is no benchmark 'model'; there are models, onnx, accuracy" in capsys.readouterr().err
