"""A device beside the CPU: how long copies take."""

from __future__ import annotations

import pytest

from tvm_mxplan.core.machine import DeviceRates, default_rates


def test_a_copy_takes_its_start_and_its_bytes() -> None:
    """A gigabyte in a second is a thousand bytes in a microsecond."""
    rates = DeviceRates(default_rates(), copy_start_us=10.0, copied=12.0)
    assert rates.copying_us(0) == 10.0
    assert rates.copying_us(12_000) == pytest.approx(11.0)
    assert rates.copying_us(36_000_000) == pytest.approx(3010.0)
