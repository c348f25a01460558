"""The cache that ``compile`` asks before it works, and stores its result in: it can only save time.

Whatever goes wrong in here is a reason in ``report.cache``, and the compilation goes on without.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import environment
from ..core.decisions.choices import Choices
from ..core.fingerprint import Fingerprint
from ..errors import UnsupportedError
from ..execution.executable import Executable
from ..execution.threads import threads
from ..frontend.stated_inputs import StatedInputs
from ..options import Options
from ..rates.kept import rates_here
from ..rates.wanted import wanted_rates
from ..targets import TVM, TargetText
from ..tuning.facts import machine
from ..verify.remembered import verified_file
from .artifact import entries_of, restore
from .container import UnusableCache
from .key.model_source import ModelSource, model_source
from .key.surroundings import shared_surroundings, surroundings
from .outcome import CacheReport
from .session import SESSION
from .store import Store

if TYPE_CHECKING:
    import tvm


def default_store() -> Store:
    """The folder that the environment names; UnusableCache where it names none that could be used."""
    folder = environment.cache_folder()
    if folder is None:
        raise UnusableCache("no absolute folder; set TVM_MXPLAN_CACHE_DIR to one")
    return Store(folder, environment.cache_bytes())


@dataclass(frozen=True)
class _Request:
    """A compilation that may be in the store, or that will be."""

    store: Store
    source: ModelSource
    facts: dict[str, Any]
    fingerprint: str


class CompileCache:
    """One compilation's dealings with the cache: ``find``, and where that gives None, ``keep``.

    Attributes
    ----------
    report : what came of it so far.
    choices : what the passes replay and note; None where nothing is.
    seconds : what it took so far.
    """

    def __init__(
        self,
        model: Any,
        inputs: StatedInputs,
        target: TargetText,
        options: Options,
    ) -> None:
        self.report = CacheReport()
        self.seconds = 0.0
        self.choices = None
        self._request: _Request | None = None
        self._options = options
        if options.cache == "disabled":
            return
        start = time.perf_counter()
        try:
            facts = surroundings(target, options)
            self.choices = SESSION.choices(facts)
            if options.cache == "on_compile":
                facts = {**facts, "refused": _refused(options), "rates": _rates(target, options)}
                self._request = _request(model, inputs, facts)
        except UnusableCache as error:
            self.report = CacheReport("bypassed", str(error))
        self.seconds += time.perf_counter() - start

    def find(self) -> Executable | None:
        """The finished compilation, if the store has it."""
        if self._request is None:
            return None
        start = time.perf_counter()
        try:
            if self._options.verify == "all":
                raise UnusableCache("verify=all: kernels are checked again")
            if self._options.dump_after:
                raise UnusableCache("dump_after: the phases are to be seen")
            executable = self._restored(self._request)
        except UnusableCache as error:
            self.report = CacheReport("miss", str(error))
            executable = None
        self.seconds += time.perf_counter() - start
        if executable is not None:
            seconds = {"cache": round(self.seconds, 3)}
            executable.amend_report(cache=self.report, seconds=seconds)
        return executable

    def keep(
        self, executable: Executable, constants: Mapping[str, Sequence[tvm.runtime.Tensor]]
    ) -> Executable:
        """Write the compilation that ``find`` did not find; ``constants`` are those of each region."""
        request = self._request
        if self.choices is not None:
            SESSION.keep(self.choices)
            if request is None and SESSION.source and self.choices.regions:
                self.report = _replayed(self.choices)
        if request is not None:
            start = time.perf_counter()
            stored = ""
            reason = self.report.reason
            try:
                stored = _store(request, executable, constants, self._options.packed_weights)
            except (UnusableCache, UnsupportedError) as error:
                reason = f"{reason}; not stored: {error}"
            except Exception as error:  # a linker, a full folder for temporary files: the result is there
                reason = f"{reason}; not stored: {type(error).__name__}: {error}"
            self.report = CacheReport(self.report.outcome, reason, stored)
            self.seconds += time.perf_counter() - start
        if self.report.outcome == "off":
            return executable
        seconds = {**executable.report.seconds, "cache": round(self.seconds, 3)}
        executable.amend_report(cache=self.report, seconds=seconds)
        return executable

    def _restored(self, request: _Request) -> Executable:
        container = request.store.find(request.fingerprint)
        name = request.store.path_of(request.fingerprint).name
        module, signature, report = restore(container, request.source.initializer, name)
        if not request.source.unchanged():
            raise UnusableCache("the model's file changed while it was read")
        self.report = CacheReport("hit", "", name)
        opcheck, folder = self._options.opcheck, self._options.opcheck_folder
        return Executable(module, signature, report, opcheck=opcheck, opcheck_folder=folder)


def _replayed(choices: Choices) -> CacheReport:
    """Reports the use of choices that were loaded."""
    reason = f"choices for {choices.used} of {choices.regions} region(s) replayed"
    return CacheReport("hit" if choices.used == choices.regions else "miss", reason, SESSION.source)


def _refused(options: Options) -> list[str]:
    """Kernels known to be wrong on this machine, which an older compilation may have in its plan."""
    if options.verify == "off":
        return []
    file = verified_file(machine(), shared_surroundings()["versions"]["plugin"])
    return sorted(file.load().refused) if file else []


def _rates(target: TargetText, options: Options) -> dict[str, Any]:
    """Returns the rates of this machine, by which plans go."""
    works = any(name != TVM for name in target.order) and not environment.disabled()
    return wanted_rates(options, threads(), rates_here, weighs=works).to_json()


def _request(model: Any, inputs: StatedInputs, facts: Mapping[str, Any]) -> _Request:
    if environment.disabled():
        raise UnusableCache("TVM_MXPLAN_DISABLE is set")
    tvm = sys.modules.get("tvm")
    if tvm is not None and tvm.transform.PassContext.current().instruments:
        raise UnusableCache("instruments of a pass context want to see every pass")
    store = default_store()
    try:
        source = model_source(model, inputs.shapes, store)
    except Exception as error:  # the model's own troubles are told by those who compile it
        raise UnusableCache(f"no fingerprint of this model ({type(error).__name__}: {error})") from error
    if source is None:
        raise UnusableCache("no fingerprint of this kind of model")
    if inputs.states:
        facts = {**facts, "states": [sorted(inputs.states.items()), inputs.capacity]}
    if inputs.bounds:
        facts = {**facts, "bounds": {name: list(pair) for name, pair in sorted(inputs.bounds.items())}}
    fingerprint = Fingerprint()
    fingerprint.add("model", source.fingerprint)
    fingerprint.add("surroundings", facts)
    return _Request(store, source, {**facts, "model": source.fingerprint}, fingerprint.hexdigest())


def _store(
    request: _Request,
    executable: Executable,
    constants: Mapping[str, Sequence[tvm.runtime.Tensor]],
    packed: bool,
) -> str:
    if not request.source.unchanged():
        raise UnusableCache("the model's file changed while it was compiled")
    ends = executable.signature, executable.report
    entries = entries_of(executable.module, *ends, constants, request.source.initializers, packed)
    return request.store.save(request.fingerprint, request.facts, entries).name
