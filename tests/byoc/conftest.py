"""Numbers of OpenMP threads to run tests with."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    openmp = ctypes.CDLL("libgomp.so.1")
    before = openmp.omp_get_max_threads()
    openmp.omp_set_num_threads(request.param)
    yield request.param
    openmp.omp_set_num_threads(before)
