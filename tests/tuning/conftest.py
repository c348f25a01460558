"""Small models."""

from __future__ import annotations

import onnx
import pytest

from tvm_mxplan.testing import zoo


@pytest.fixture(scope="session")
def tiny() -> onnx.ModelProto:
    return zoo.load("tiny")
