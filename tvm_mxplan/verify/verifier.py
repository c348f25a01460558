"""``Verifier``: what one compilation checks of its kernels, what it takes from earlier ones, what it refuses.

A kernel that agreed once in this process, or in another one by the file in the cache folder, is not run
again, unless the option says ``all``.  A kernel that differs is refused in the library, for this process and
in the file, so that plans from then on have something else in its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..byoc.backend import Backend
from ..cache.container import UnusableCache
from ..cache.safe_file import check_owner
from ..core.decisions.verification import Refusal, Verification
from ..core.kernel import Kernel, kernels_of
from ..core.program import program as ir
from ..core.program.specialize import instances
from ..options import Options
from ..passes.region.annotate import annotate
from ..tuning.facts import digest_of
from ..tuning.place import Place
from .remembered import Known, VerifiedFile, verified_file

_NOT_KEPT = "verified kernels are not kept"


@dataclass
class Process:
    """The kernels checked and the files read by this process; safe to use from many threads."""

    agreed: dict[str, set[str]] = field(default_factory=dict)
    files: dict[Path, tuple[tuple[int, ...], Known]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def agreed_on(self, machine: str) -> set[str]:
        with self.lock:
            return set(self.agreed.get(machine, ()))

    def add(self, machine: str, digest: str) -> None:
        with self.lock:
            self.agreed.setdefault(machine, set()).add(digest)

    def discard(self, machine: str, digest: str) -> None:
        with self.lock:
            self.agreed.get(machine, set()).discard(digest)

    def read(self, file: VerifiedFile) -> Known:
        """Returns the content of the file; it is read again only where it is another one."""
        state = file.state()
        with self.lock:
            kept = self.files.get(file.path)
        if kept is not None and kept[0] == state:
            return kept[1]
        known = file.load()
        with self.lock:
            self.files[file.path] = (state, known)
        return known


PROCESS = Process()


class Verifier:
    """One compilation's dealings with verified kernels; see the module's text.

    Parameters
    ----------
    place : where kernels are run.
    """

    def __init__(self, options: Options, place: Place) -> None:
        self._all = options.verify == "all"
        self._place = place
        self._seconds = 0.0
        self._notes: list[str] = []
        self._machine = digest_of(place.facts)
        self._file: VerifiedFile | None = None
        self._known = Known()
        self._seen: set[str] = set()
        self._checked: set[str] = set()
        self._refused: dict[str, Refusal] = {}
        self._unchecked: dict[str, str] = {}
        with self._timed():
            if options.cache != "disabled":
                self._open()
            self._agreed = set() if self._all else PROCESS.agreed_on(self._machine) | self._known.agreed

    def refuse_known(self, backend: Backend) -> None:
        """Refuse what differed in earlier compilations, before anything is planned."""
        known = [one for key, one in self._known.refused.items() if key.startswith(_key(backend))]
        if self._all or not known:
            return
        with self._timed():
            for refusal in known:
                backend.refuse(refusal.descriptor, refusal.implementation, refusal.reason)
        self._notes.append(f"{len(known)} kernel(s) refused earlier on this machine")

    def wrong(self, backend: Backend, programs: Sequence[ir.Program]) -> dict[str, Refusal]:
        """Check what is not known of the kernels of planned programs.

        Returns
        -------
        wrong : for each program, by its name, the first of its kernels that is refused from now on.
        """
        with self._timed():
            found: dict[str, Refusal] = {}
            for program in programs:
                for step, kernel in _kernels(program, backend):
                    refusal = self._refusal(backend, step, kernel)
                    if refusal is not None:
                        found.setdefault(program.name, refusal)
            self._keep()
        return found

    def close(self) -> Verification:
        """Returns the verification as a whole."""
        return Verification(
            len(self._checked),
            len(self._seen - self._checked - self._unchecked.keys()),
            tuple(self._refused.values()),
            tuple(self._unchecked.values()),
            round(self._seconds, 4),
            tuple(dict.fromkeys(self._notes)),
        )

    def _refusal(self, backend: Backend, step: str, kernel: Kernel) -> Refusal | None:
        """Check a kernel, if that is to be done; how it differs, if it does."""
        digest = _key(backend) + kernel.digest
        if digest in self._refused:
            return self._refused[digest]
        if digest in self._agreed or digest in self._unchecked:
            self._seen.add(digest)
            return None
        self._seen.add(digest)
        checked = self._place.check_kernel(backend, kernel)
        if checked.outcome == "unchecked":
            self._unchecked[digest] = f"{step}, {kernel}: {checked.reason}"
            return None
        self._checked.add(digest)
        if checked.outcome == "agreed":
            self._agreed.add(digest)
            PROCESS.add(self._machine, digest)
            return None
        descriptor = backend.describe(kernel.program).steps[0].descriptor
        refusal = Refusal(step, str(kernel), descriptor, kernel.implementation, checked.reason)
        backend.refuse(descriptor, kernel.implementation, refusal.reason)
        PROCESS.discard(self._machine, digest)
        self._refused[digest] = refusal
        return refusal

    def _open(self) -> None:
        """The file of this machine in the cache folder, and what it says."""
        try:
            self._file = verified_file(self._place.facts, self._place.versions["plugin"])
        except UnusableCache as error:
            self._notes.append(f"{_NOT_KEPT}: {error}")
            return
        if self._file is None:
            self._notes.append(f"{_NOT_KEPT}: no absolute folder; set TVM_MXPLAN_CACHE_DIR to one")
            return
        self._known = PROCESS.read(self._file)
        if self._known.note:
            self._notes.append(self._known.note)

    def _keep(self) -> None:
        """Note in the file what it does not say yet."""
        if self._file is None:
            return
        agreed = (self._seen & self._agreed) - self._known.agreed
        refused = {
            digest: refusal for digest, refusal in self._refused.items() if digest not in self._known.refused
        }
        if not agreed and not refused:
            return
        reason = _made(self._file.path.parent) or self._file.add(agreed, refused)
        if reason:
            self._notes.append(f"{_NOT_KEPT}: {reason}")
            self._file = None
            return
        self._known = PROCESS.read(self._file)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds += time.perf_counter() - start


def _key(backend: Backend) -> str:
    """Returns the prefix of the digests of a library's kernels, which keeps libraries' kernels apart."""
    return f"{backend.library}:"


def _kernels(program: ir.Program, backend: Backend) -> Iterator[tuple[str, Kernel]]:
    """Those of a planned program; with symbolic shapes, those that it has at plausible numbers."""
    for instance in instances(program):
        yield from kernels_of(annotate(instance, backend) if program.symbols else instance)


def _made(folder: Path) -> str:
    """Make the folder; why that could not be, '' if it is there and nobody else's."""
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # a mode is for the last one alone
        folder.mkdir(mode=0o700, exist_ok=True)
        check_owner(folder.lstat())
    except (OSError, UnusableCache) as error:
        return f"{folder}: {getattr(error, 'strerror', None) or error}"
    return ""


def verifier_of(options: Options, place: Place) -> Verifier | None:
    """A verifier for one compilation; None where nothing is to be verified."""
    return None if options.verify == "off" else Verifier(options, place)
