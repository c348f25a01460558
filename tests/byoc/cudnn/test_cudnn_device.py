"""Files of device properties: what they hold, and what is said of those that are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tvm_mxplan.byoc.cudnn.device import read_device
from tvm_mxplan.errors import InvalidInputError

DEVICES = Path(__file__).resolve().parent / "devices"


@pytest.mark.parametrize("name, arch, count", [("a100", "sm_80", 108), ("h200", "sm_90", 132)])
def test_a_device_is_known_by_its_file(name: str, arch: str, count: int) -> None:
    device = read_device(DEVICES / f"{name}.json")
    assert (device.arch, device.multiprocessors) == (arch, count)
    assert device.properties == json.loads((DEVICES / f"{name}.json").read_text())


@pytest.mark.parametrize("change", ["missing", "text", "negative", "short"])
def test_each_wrong_property_is_named(tmp_path: Path, change: str) -> None:
    good = json.loads((DEVICES / "h200.json").read_text())
    path = tmp_path / "device.json"
    tried = 0
    for name, value in good.items():
        bad = dict(good)
        if change == "missing":
            del bad[name]
        elif change == "text":
            bad[name] = 5 if name == "deviceName" else "5"
        elif change == "negative" and isinstance(value, int):
            bad[name] = -1
        elif change == "short" and isinstance(value, list):
            bad[name] = value[:2]
        else:
            continue
        path.write_text(json.dumps(bad))
        with pytest.raises(InvalidInputError, match=f"{name} is"):
            read_device(path)
        tried += 1
    assert tried > 1


@pytest.mark.parametrize("text, said", [("{", "no device properties"), ("[]", "expected an object")])
def test_other_files_are_refused_with_the_way_out(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "device.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=f"{said}.*tvmc device-properties"):
        read_device(path)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_device(tmp_path / "absent.json")
