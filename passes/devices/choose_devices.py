"""``ChooseDevices``: which of two devices runs each operator, before libraries are asked.

Before   lv = R.take(table, i)        gv = R.nn.conv2d(...)       operators with names
After    R.func_attr({"mxplan.devices": {"take_0": "llvm", "conv2d_0": "cuda"}})

Libraries of both devices are asked first what they would take, each side alone. Then all operators of
``main``, or of each size of its batch, are placed at once (``crossings``) by what they take on either
(``device_times``) and by the copies between; an operator that a user wants a library to have is that
library's device's. What stands in branches, and in other functions, is the CPU's.

Left to others: who of a device's libraries runs an operator (dispatch), and copies (place_tensors).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import tvm
from tvm import relax

from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.core.machine import MachineRates

from ..annotations import CPU, dispatch_of, with_devices
from ..dispatch import DispatchOperators
from ..dispatch.implementations import ImplementationRecord, Preference
from ..relax_types import operator_name
from ..sizes.named_batch import entries
from .crossings import place
from .device_times import DeviceTimes, failure_on_device, is_operator
from .sides import Beside


@tvm.transform.module_pass(opt_level=0, name="ChooseDevices")
class ChooseDevices:
    """Module pass; see the module's text.

    Parameters
    ----------
    preference : the libraries of both devices, and what the user wants.
    beside : the device beside the CPU.
    machine : what the CPU can do.
    journal : is told which operators TVM fails to have on the device.
    """

    def __init__(
        self, preference: Preference, beside: Beside, machine: MachineRates, journal: Journal | None = None
    ) -> None:
        self.preference = preference
        self.beside = beside
        self.machine = machine
        self.journal = Journal() if journal is None else journal

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        asked = {device: self._asked(mod, device) for device in (CPU, self.beside.name)}
        made = mod.clone()
        for gvar in entries(mod):
            taken = {device: self._taken(asked[device], gvar, device) for device in asked}
            self.journal.fail(self._failures(mod[gvar], taken[self.beside.name]))
            made.update_func(gvar, self._chosen(mod, mod[gvar], taken))
        return made

    def _failures(self, function: relax.Function, taken: set[str]) -> dict[str, str]:
        """TVM's failures with operators on the device that no library takes there, by their names."""
        values = [binding.value for block in function.body.blocks for binding in block.bindings]
        named = {operator_name(value): value for value in values if is_operator(value)}
        told = {name: failure_on_device(value, self.beside) for name, value in named.items()}
        return {
            name: f"its type on {self.beside.name}: {reason}"
            for name, reason in told.items()
            if name is not None and name not in taken and reason
        }

    def _chosen(
        self, mod: tvm.IRModule, function: relax.Function, taken: Mapping[str, set[str]]
    ) -> relax.Function:
        """A function that calls begin with, with the device of each operator."""
        known = DeviceTimes.of(mod, function, self.beside, self.machine, taken)

        def times(variable: tvm.ir.Var, value: relax.Expr) -> Mapping[str, float]:
            found = known(variable, value)
            wanted = self._wanted(value)
            return {wanted: found[wanted]} if wanted in found else found

        placed = place(function, self.beside.name, times, self.beside.rates.copying_us)
        chosen = {}
        for block in function.body.blocks:
            for binding in block.bindings:
                name = operator_name(binding.value)
                if name is not None:
                    chosen[name] = placed[binding.var]
        return with_devices(function, chosen)

    def _wanted(self, value: relax.Expr) -> str:
        """The device of the library that the user wants an operator to have, '' without such a wish."""
        if not is_operator(value):
            return ""
        wish, _ = self.preference.wish(value)
        for one in self.preference.libraries:
            if one.name == wish and one.backend is not None:
                return self.beside.name if self.beside.runs(one.backend) else CPU
        return ""

    def _asked(self, mod: tvm.IRModule, device: str) -> tvm.IRModule:
        """Asks the libraries of one device alone which operators they would take."""
        alone, _ = self._alone(device)
        dispatch: tvm.transform.Pass = DispatchOperators(replace(self.preference, implementations=alone))
        return dispatch(mod)

    def _taken(self, asked: tvm.IRModule, gvar: tvm.ir.GlobalVar, device: str) -> set[str]:
        """Names of the operators of a function that they would take."""
        _, names = self._alone(device)
        function = asked[gvar.name_hint]
        return {name for name, chosen in dispatch_of(function).items() if chosen in names}

    def _alone(self, device: str) -> tuple[tuple[ImplementationRecord, ...], set[str]]:
        """The implementations of one device, and names of the libraries among them that are here."""
        alone = tuple(
            one
            for one in self.preference.implementations
            if one.backend is None or self.beside.runs(one.backend) == (device != CPU)
        )
        return alone, {one.name for one in alone if one.backend is not None and not one.absent}
