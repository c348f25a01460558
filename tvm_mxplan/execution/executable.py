"""A compiled model: call it, export it, read its report."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import environment
from ..byoc import registry
from ..byoc.region_module import keep_specializations
from ..errors import InvalidInputError, MxplanError, UnsupportedError
from ..export.exported_weights import exported_weights
from ..export.files import check_destination, whole_file
from ..export.library_digest import append_digest, check_digest
from ..export.linking import write_library
from ..export.shared_library import check_library
from ..report.stored_report import StoredReport
from . import machine, shape_errors
from .bound import BoundCall
from .calls import Caller, arguments_of, arrays_of, copy_into, taken
from .ffi import tvm_ffi
from .session import StatefulSession
from .signature import ANY, Port, Signature
from .sizes import combinations, zeros

if TYPE_CHECKING:
    import tvm

    from ..report.report import Report

METADATA = "mxplan_metadata"
_SCHEMA = 1


class TargetDevice(NamedTuple):
    """A device, no CPU, that a model was compiled for: a library by its name, and the device in words.

    ``shared`` where the CPU runs a part of the model, which then takes and returns tensors of the CPU's.
    """

    library: str
    title: str
    shared: bool = False

    @property
    def where(self) -> machine.Devices:
        """The devices of the virtual machine."""
        return machine.BOTH if self.shared else machine.GPU

    def absent(self) -> str:
        """Returns the reason why it cannot run in this process, '' if it can."""
        reason = registry.engine(self.library).absent()
        return f"compiled for {self.title}: {reason}" if reason else ""


class Executable:
    """A compiled model, from :func:`tvm_mxplan.compile` or :func:`tvm_mxplan.load`.

    Calls are safe from many threads: each thread has a virtual machine of its own over the same code,
    weights and primitives.

    Attributes
    ----------
    signature : inputs and outputs with names, shapes and element types.
    """

    def __init__(
        self,
        module: Any,
        signature: Signature,
        report: Report | StoredReport,
        opcheck: bool = False,
        opcheck_folder: str | None = None,
        elsewhere: str = "",
        device: TargetDevice | None = None,
    ) -> None:
        self._module = module
        self._elsewhere = elsewhere or (device.absent() if device else "")
        self._gpu = device is not None
        self._devices = device.where if device else machine.CPU
        self.signature = signature
        self._report = report
        self._amendments: dict[str, Any] = {}
        self._opcheck = opcheck or environment.debug_opcheck()
        self._opcheck_folder = opcheck_folder or environment.opcheck_folder()
        self._determinism = report.determinism() if isinstance(report, StoredReport) else report.determinism
        watched = self._opcheck or self._determinism is not None
        self._short = not (self._elsewhere or self._gpu or watched)
        self._thread = threading.local()

    @property
    def report(self) -> Report:
        """The report of what ran where, and why the rest did not; empty for libraries that carry none.

        Raises
        ------
        InvalidInputError : a library's report is damaged, or of another version; it runs all the same.
        """
        if isinstance(self._report, StoredReport):
            self._report = self._report.read(self._amendments)
        elif self._amendments:
            self._report = replace(self._report, **self._amendments)
        self._amendments = {}
        if self._gpu and not self._elsewhere:
            from ..report.inspection import failed_plans

            self._report = replace(self._report, failed_plans=failed_plans(self._module))
        return self._report

    def __copy__(self) -> Executable:
        return self

    def __reduce__(self) -> Any:
        raise UnsupportedError(
            "a compiled model is not copied or pickled; export it (ex.export) and load the file "
            "(tvm_mxplan.load) where another one is wanted"
        )

    def amend_report(self, **fields: Any) -> None:
        """Put ``fields`` into the report in the place of those it has."""
        self._amendments.update(fields)

    @property
    def module(self) -> Any:
        """The TVM runtime module or executable, for use with TVM's own virtual machine; imports ``tvm``."""
        restored = getattr(self._module, "retyped", None)
        self._module = restored() if restored else machine.retyped(self._module)
        return self._module

    def __call__(self, /, *args: Any, **kwargs: Any) -> list[tvm.runtime.Tensor]:
        """Run the model on numpy arrays or TVM tensors, by position or by input name.

        Arrays of other libraries are taken by ``__dlpack__`` or ``__array__``.

        Returns
        -------
        outputs : list of TVM tensors, also where there is only one. Shapes and numbers come as tensors of
            int64, sequences inside as lists.

        Raises
        ------
        InvalidInputError : an unknown name, a missing input, a wrong shape or element type.
        UnsupportedError : it was compiled for another machine; see :func:`tvm_mxplan.tune`.
        InternalError : under opcheck, a step whose numbers are not those of its reference.
        """
        result = self._result(args, kwargs)
        return [result] if isinstance(result, tvm_ffi.core.Tensor) else machine.outputs_of(result)

    def run(self, inputs: Any, out: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """Run the model from arrays to numpy arrays.

        Parameters
        ----------
        inputs : one array, a sequence of them in the order of the inputs, or a mapping by name.
        out : arrays for the results, in their order: each writable, with the result's shape and element type.

        Returns
        -------
        outputs : ``out``, or new arrays, which nobody else has.

        Raises
        ------
        InvalidInputError : as calls raise it, and for an array in ``out`` that a result does not fit.
        """
        args, kwargs = arguments_of(inputs)
        results = arrays_of(self._result(args, kwargs))
        if out is None:
            return results
        copy_into(out, results, [port.name for port in self.signature.outputs])
        return list(out)

    def bind(self, inputs: Any, out: Sequence[np.ndarray] | None = None) -> BoundCall:
        """Tie arrays to the model, for calls without arguments that read and write them where they stand.

        With ``out``, the model runs once, so that its results are known to fit.

        Parameters
        ----------
        inputs : as for :meth:`run`; numpy arrays must be writable and dense.
        out : arrays that each call writes its results into; without, each call makes new ones.

        Raises
        ------
        InvalidInputError : as calls raise it, and for arrays whose memory cannot be used as it is.
        UnsupportedError : a model that is for another machine, for a GPU, deterministic, or under opcheck.
        """
        self._check_stateless()
        if not self._short:
            watched = "bind: a model for a GPU, deterministic or under opcheck is called, not bound"
            raise UnsupportedError(self._elsewhere or watched)
        values = self.signature.bind(*taken(*arguments_of(inputs), shared=True))
        main = machine.virtual_machine(getattr(self._module, "mod", self._module))["main"]
        return BoundCall(main, self.signature, values, out)

    def session(self) -> StatefulSession:
        """Begin calls that follow one another, of a model compiled with ``states``.

        Raises
        ------
        InvalidInputError : a model without states.
        UnsupportedError : one for another machine, or for a GPU.
        """
        if not self.signature.states:
            raise InvalidInputError(
                "session: the model keeps nothing from call to call; compile it with states="
            )
        if self._elsewhere or self._gpu:
            raise UnsupportedError(self._elsewhere or "session: a model for a GPU is called, not kept")
        vm = machine.virtual_machine(getattr(self._module, "mod", self._module))
        return StatefulSession(vm["main"], self.signature)

    def prepare(self, **sizes: int | Iterable[int]) -> None:
        """Make a model with named dimensions ready for sizes, so that no call at them is a first one.

        Each combination is run once, on zeros.  Regions keep 16 specialisations, or as many as were prepared
        at once; what was used least recently goes first.

        Parameters
        ----------
        sizes : for each named dimension a number, or several: ``ex.prepare(batch=[1, 8, 32], tokens=128)``.

        Raises
        ------
        InvalidInputError : a name that no dimension has, a dimension without sizes, or a size out of bounds.
        """
        chosen = combinations(self.signature, sizes)
        keep_specializations(getattr(self._module, "mod", self._module), len(chosen))
        for numbers in chosen:
            self(*zeros(self.signature, numbers))

    def _result(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The function's result, of inputs by position and by name."""
        self._check_stateless()
        try:
            if not self._short:
                return self._long_way(self.signature.bind(*taken(args, kwargs)))
            caller = self._caller()
            values = args if not kwargs else None if args else self.signature.in_order(kwargs)
            result = None if values is None else caller(values)
            if result is None:
                result = caller.looked_at(self.signature.bind(*taken(args, kwargs)))
            return result
        except (RuntimeError, ValueError) as error:
            said = None if isinstance(error, MxplanError) else shape_errors.told(error)
            if said is None:
                raise
            raise said from error

    def _check_stateless(self) -> None:
        if self.signature.states:
            raise UnsupportedError("a model compiled with states is called through a session: ex.session()")

    def _long_way(self, values: Sequence[Any]) -> Any:
        if self._elsewhere:
            raise UnsupportedError(self._elsewhere)
        bound = [machine.tensor_of(value, self._devices is machine.GPU) for value in values]
        with self._determinism.held() if self._determinism else nullcontext():
            return self._checked(bound) if self._opcheck else self._main()(*bound)

    @property
    def determinism_lost(self) -> list[str]:
        """Lists reasons why calls may give other bits than where the model was compiled; empty for none."""
        if self._determinism is None:
            return ["compiled without the option deterministic"]
        from ..report.inspection import other_implementations

        return self._determinism.lost() + other_implementations(self.module)

    def _checked(self, bound: list[tvm.runtime.Tensor]) -> Any:
        from ..opcheck import checking

        with checking(self._opcheck_folder) as checker:
            result = self._main()(*bound)
        checker.result().raise_first()
        return result

    def _main(self) -> Any:
        if not hasattr(self._thread, "main"):
            self._thread.vm = machine.virtual_machine(
                getattr(self._module, "mod", self._module), self._devices
            )
            self._thread.main = self._thread.vm["main"]
        return self._thread.main

    def _caller(self) -> Caller:
        try:
            found: Caller = self._thread.caller
        except AttributeError:
            found = self._thread.caller = Caller(self._main(), self.signature)
        return found

    def export(self, path: str | os.PathLike[str], packed_weights: bool = False) -> None:
        """Write a stock TVM library; the file appears whole or not at all.

        Parameters
        ----------
        packed_weights : keep the weights in the layouts that this machine's primitives want, so that they
            are used where the system maps the file: faster to load, but not on huge pages.

        Raises
        ------
        InvalidInputError : a path that does not end in .so, or a folder that cannot be written.
        UnsupportedError : no compiler to link with.
        """
        import tvm

        path = check_destination(path, ".so")
        if isinstance(self.module, tvm.runtime.Module):
            raise InvalidInputError(f"{path}: a loaded library is exported by copying its file")
        with whole_file(path) as partial:
            with exported_weights(self.module.mod, packed_weights):
                write_library(self.module, partial, path)
            append_digest(partial)


def load(path: str | os.PathLike[str]) -> Executable:
    """Load a library that :meth:`Executable.export` or stock TVM wrote.

    Raises
    ------
    InvalidInputError : the file is missing, truncated, damaged or no library of TVM's.
    """
    path = Path(path)
    check_library(path)
    check_digest(path)
    machine.start()
    try:
        module = _load_module(path)
        vm = machine.virtual_machine(module)
        vm["main"]
    except MxplanError:  # the file is one of ours, and what it holds cannot be run here
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InvalidInputError(f"{path}: not a compiled model, or truncated ({lines[-1]})") from error
    metadata = _metadata(vm)
    if metadata is None:
        from ..report.report import Report

        return Executable(module, _unknown_signature(vm), Report())
    try:
        signature = Signature.from_json(metadata["signature"])
        report = StoredReport(metadata["report"], str(path))
        device = TargetDevice(**metadata["device"]) if "device" in metadata else None
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InvalidInputError(
            f"{path}: damaged, or of another version; compile the model again ({reason})"
        ) from error
    return Executable(module, signature, report, device=device)


def _load_module(path: Path) -> Any:
    """Load under a new name: by the old one, the system gives what it loaded before, not the file of now."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="mxplan-")
    except OSError:  # nowhere to put a link
        return tvm_ffi.load_module(str(path))
    with folder as name:
        link = Path(name) / "model.so"
        link.symlink_to(path.resolve())
        return tvm_ffi.load_module(link)  # TVM's own would follow the link


def metadata_text(signature: Signature, report: Report, device: TargetDevice | None = None) -> str:
    """Writes as text what a compiled library carries about itself."""
    told = {"schema": _SCHEMA, "signature": signature.to_json(), "report": report.to_json()}
    return json.dumps(told if device is None else {**told, "device": device._asdict()})


def _metadata(vm: Any) -> dict[str, Any] | None:
    try:
        data = json.loads(str(vm[METADATA]()))
    except Exception:
        return None
    return data if data.get("schema") == _SCHEMA else None


def _unknown_signature(vm: Any) -> Signature:
    arity = int(vm["get_function_arity"]("main"))
    names = [str(vm["get_function_param_name"]("main", i)) for i in range(arity)]
    return Signature(tuple(Port(name, ANY, "") for name in names), ())


__all__: Sequence[str] = ["Executable", "load"]
