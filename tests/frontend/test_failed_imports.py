"""Imports that fail: the error is all that the user sees."""

from __future__ import annotations

import gc

import pytest
from tvm import relax

from tvm_mxplan.frontend.origins import OriginBuilder


@pytest.mark.parametrize("dataflow", [False, True])
def test_no_block_of_a_failed_import_stays_open(dataflow: bool, capfd: pytest.CaptureFixture[str]) -> None:
    for kind, expected in ((OriginBuilder, ""), (relax.BlockBuilder, "remaining blocks")):
        builder = kind()
        x = relax.Var("x", relax.TensorType((2, 3), "float32"))
        with pytest.raises(ValueError, match="no such operator"), builder.function("main", [x]):
            if dataflow:
                with builder.dataflow():
                    builder.emit(relax.op.exp(x))
                    raise ValueError("no such operator")
            builder.emit(relax.op.exp(x))
            raise ValueError("no such operator")
        del builder
        gc.collect()
        printed = capfd.readouterr().err
        assert expected in printed if expected else not printed


def test_a_builder_goes_on_behind_an_error() -> None:
    builder = OriginBuilder()
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    with pytest.raises(ValueError, match="no"), builder.function("first", [x]):
        raise ValueError("no")
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.exp(x)))
    assert [gvar.name_hint for gvar in builder.get().functions] == ["main"]
