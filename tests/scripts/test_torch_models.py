"""scripts/torch_models: what it says without torch, and what it holds for agreement."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
from _torch import main as torch_models

FOUND = {"error": 1e-6, "executables": 1, "regions": 3, "share": 0.987, "seconds": 12.3}


def test_without_torch_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(torch_models, "NEEDED", ("no_such_package",))
    assert torch_models.main([]) == 2
    assert capsys.readouterr().err == "no_such_package not installed; pip install '.[torch_models]'\n"


@pytest.mark.parametrize(
    "change, agrees",
    [({}, True), ({"error": 2e-4}, False), ({"error": float("nan")}, False)]
    + [({name: 0}, False) for name in ("executables", "regions")],
)
def test_agreement_asks_for_regions(change, agrees):
    assert torch_models.agrees({**FOUND, **change}) is agrees


def test_cells():
    assert torch_models.cells(FOUND) == ["1.0e-06", "1", "3", "98.7 %", "12"]
    assert torch_models.cells({**FOUND, "share": None})[3] == ""


def test_what_is_not_made_counts_neither_way(monkeypatch, capsys):
    answers = {"made": FOUND, "other": {"not_made": "ValueError: sizes"}, "wrong": {**FOUND, "error": 1.0}}
    monkeypatch.setattr(torch_models, "NEEDED", ())
    monkeypatch.setattr(torch_models, "_names", lambda options: options.transformers.split(","))
    monkeypatch.setattr(torch_models, "answer_of", lambda command, _seconds: answers[command[3]])
    assert torch_models.main(["--transformers", "made,other", "--doors", "exported"]) == 0
    said = capsys.readouterr().out
    assert "| other | exported | not made: ValueError: sizes |" in said and "1 of 1 compiled" in said
    assert torch_models.main(["--transformers", "made,other,wrong", "--doors", "exported"]) == 1
    assert "1 of 2 compiled" in capsys.readouterr().out


def test_architectures_are_made_small():
    for package in ("torch", "transformers"):
        pytest.importorskip(package, reason="architectures are made of torch and transformers")
    from _torch.architectures import PREFIX, NotMade, architecture, architecture_names

    assert {"gpt2", "llama"} <= set(architecture_names())
    network = architecture(f"{PREFIX}gpt2")
    assert sum(parameter.numel() for parameter in network.make().parameters()) < 1_000_000
    assert set(network.inputs(2)) == {"input_ids", "attention_mask"}
    with pytest.raises(NotMade, match="no_such_thing"):
        architecture(f"{PREFIX}no_such_thing")


def test_every_network_is_named_once():
    pytest.importorskip("torch", reason="the catalogue makes networks of torch")
    from _torch.catalogue import NETWORKS

    assert len({network.name for network in NETWORKS}) == len(NETWORKS) > 18


def test_networks_beside_the_catalogue_are_timms():
    for package in ("torch", "timm"):
        pytest.importorskip(package, reason="networks are made of torch and timm")
    from _torch.catalogue import network_of

    network = network_of("lcnet_050")
    assert tuple(network.inputs(3)["x"].shape) == (3, 3, 224, 224)
    assert tuple(network_of("resnet18").inputs(1)["x"].shape) == (1, 3, 96, 96)


def test_networks_of_other_libraries():
    for package in ("torch", "torchvision"):
        pytest.importorskip(package, reason="they are made of torch and of the libraries")
    from _torch.architectures import NotMade
    from _torch.libraries import LIBRARIES, _made, library_names, library_network

    names = library_names("all")
    assert {name.partition(":")[0] for name in names} == {*LIBRARIES} and len(names) > len(LIBRARIES)
    assert all(name.startswith("torchvision:") for name in library_names("torchvision"))
    with pytest.raises(ValueError, match="no networks of keras; expected some of torchvision"):
        library_names("torchvision,keras")
    network = library_network("torchvision:r3d_18")
    assert network is not None and network.inputs(2)["x"].shape == (2, 3, 8, 56, 56)
    assert not network.make().training
    assert library_network("resnet18") is None
    with pytest.raises(NotMade, match="no_such_library"):
        _made("no_such_library.Class", {})
