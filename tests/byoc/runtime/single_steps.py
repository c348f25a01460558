"""Programs of one step over images in channels last, and what oneDNN says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import pytest
from program_builder import Array, Builder, call, random

from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.description import StepInfo
from tvm_mxplan.core.program import program as ir

RELU = ir.EltwisePostOp("relu", 0.0, 0.0)


@pytest.fixture(autouse=True)
def no_refusals() -> Iterator[None]:
    yield
    library.forget_refusals()
    library.set_errata(True)


@contextmanager
def without(told: StepInfo) -> Iterator[None]:
    """Refuses the implementation of a step meanwhile."""
    library.refuse(told.descriptor, told.implementation, "for this test")
    try:
        yield
    finally:
        library.forget_refusals()


class Case(Protocol):
    """One step that runs on drawn numbers."""

    def info(self) -> StepInfo: ...
    def run(self) -> Array: ...


def with_and_without(case: Case, own: str) -> tuple[Array, Array]:
    """Results of the implementation ``own``, which runs a step, and of what the library has in its place."""
    told = case.info()
    assert told.implementation == own
    ours = case.run()
    with without(told):
        assert case.info().implementation != own
        return ours, case.run()


def info(b: Builder) -> StepInfo:
    return library.describe(b.build()).steps[0]


def stored(dims: tuple[int, ...]) -> Array:
    """Random numbers in the shape of a 2-D image that is stored channels last."""
    n, c, h, w = dims
    return random(n, h, w, c)


def run(b: Builder) -> str:
    """Runs the one step, held against its reference; which implementation it was."""
    module, program = b.module(), b.build()
    src, dst = (tuple(int(d) for d in program.values[i].shape) for i in (0, 1))
    b.run_stored(stored(src), shape=(dst[0], dst[2], dst[3], dst[1]))
    out = np.empty((dst[0], dst[2], dst[3], dst[1]), "float32")
    call(module, b.name, stored(src), out)
    (specialization,) = library.stats(module)["specializations"]
    return str(specialization["steps"][0]["implementation"])
