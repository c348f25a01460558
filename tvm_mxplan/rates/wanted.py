"""The rates that one compilation goes by: those of a file, those of its machine, or the stated ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..core.machine import MachineRates, UnusableRates, default_rates
from ..errors import InvalidInputError
from ..options import Options

MEASURED, STATED = "measured", "default"


def wanted_rates(
    options: Options, threads: int, measured: Callable[[bool], MachineRates], *, weighs: bool
) -> MachineRates:
    """The rates for a compilation.

    Parameters
    ----------
    threads : of libraries on the machine that is compiled for.
    measured : what that machine can do; is told whether measurements may be kept over there.
    weighs : whether a library takes part; if not, nothing is measured.

    Raises
    ------
    InvalidInputError : the option names a file that does not say what a machine can do.
    """
    if options.machine not in (MEASURED, STATED):
        try:
            return MachineRates.read(Path(options.machine))
        except UnusableRates as error:
            raise InvalidInputError(f"option machine: {error}") from None
    if options.machine == STATED or not weighs or not options.weighs:
        return default_rates(threads)
    return measured(options.cache != "disabled")
