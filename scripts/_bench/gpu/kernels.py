"""The GPU's time of a call by the names of kernels, from PyTorch's profiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .engines import Runner

CALLS = 5
MOST = 12
_WIDTH = 110


class Kernel(NamedTuple):
    """All launches of one kernel in a call."""

    microseconds: float
    launches: float
    name: str


def profiled(runner: Runner, calls: int = CALLS) -> list[Kernel]:
    """The kernels of a call, those that take longest first."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(calls):
            runner.run()
            runner.sync()
    return sorted(
        (
            Kernel(event.self_device_time_total / calls, event.count / calls, event.key)
            for event in profiler.key_averages()
            if event.device_type == DeviceType.CUDA
        ),
        reverse=True,
    )


def lines(title: str, kernels: Sequence[Kernel]) -> list[str]:
    """A line for all, and one for each of the longest."""
    total, launches = sum(one.microseconds for one in kernels), sum(one.launches for one in kernels)
    listed = [
        f"  {one.microseconds:9.1f} us x {one.launches:5.1f}  {one.name[:_WIDTH]}" for one in kernels[:MOST]
    ]
    left = [f"  and {len(kernels) - MOST} more kernels"] if len(kernels) > MOST else []
    return [f"{title}: {total:.1f} us of kernels, {launches:.0f} launches a call", *listed, *left]
