"""Target strings as tvmc took them: external code generators and TVM's own by preference, between commas.

``"dnnl, llvm"`` is oneDNN for what it takes and LLVM for the rest; ``"llvm -mcpu=x86-64-v3"`` is TVM alone.
``"llvm, dnnl"`` prefers TVM, which takes all that oneDNN does: oneDNN gets what the option ``prefer`` gives.
``"cudnn, cuda -arch=sm_90"`` is a GPU: a library for it, and TVM's code for the rest.
``"cudnn, cuda -arch=sm_90, dnnl, llvm"`` is a GPU and a CPU in one function, the first one preferred.
LLVM without ``-mcpu`` means the machine at hand, since oneDNN generates code for it too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .byoc import registry
from .errors import InvalidInputError, UnsupportedError

if TYPE_CHECKING:
    import tvm

TVM = "llvm"
"""The name of TVM's own code in reports, for whatever device it is."""
GPU = "cuda"
DEFAULT = ", ".join((*(registry.shown(name) for name in registry.DEFAULT), TVM))
"""The target where none is given: ``dnnl, host, llvm``."""
_HOSTS = (TVM, GPU)


def implementations() -> dict[str, str]:
    """Returns the names that parts of a target, and the option ``prefer``, may have, and what each names."""
    return {**registry.spellings(), TVM: TVM}


@dataclass(frozen=True)
class ParsedTarget:
    """Implementations by preference, and TVM's target for what is left.

    Attributes
    ----------
    order : names of libraries, and ``llvm`` for TVM.
    absent : why some of them are not here, by name.
    arch : the GPU's as it was stated, '' where it was not, or for a CPU.
    device : TVM's target for a GPU beside the CPU that ``host`` is; None for one device alone.
    device_first : whether the GPU is preferred to the CPU beside it.
    """

    order: tuple[str, ...]
    host: tvm.target.Target
    absent: tuple[tuple[str, str], ...] = ()
    arch: str = ""
    device: tvm.target.Target | None = None
    device_first: bool = True

    @property
    def is_gpu(self) -> bool:
        """Whether there is a GPU and nothing else."""
        return str(self.host.kind.name) == GPU

    @property
    def has_gpu(self) -> bool:
        return self.is_gpu or self.device is not None

    def with_arch(self, arch: str) -> ParsedTarget:
        """For the GPU that TVM calls ``arch``."""
        if self.device is not None:
            return replace(self, device=_with_arch(self.device, arch), arch=arch)
        return replace(self, host=_with_arch(self.host, arch), arch=arch)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Those that are here, by preference."""
        return tuple(name for name in self.order if name != "llvm" and name not in dict(self.absent))


@dataclass(frozen=True)
class TargetText:
    """A target taken apart, TVM not asked yet.

    Attributes
    ----------
    stated : the target as it was given.
    order, absent : as in :class:`ParsedTarget`.
    host : TVM's part of it: a target, or its text.
    device : the text of a GPU's beside a CPU, '' for one device alone.
    device_first : as in :class:`ParsedTarget`.
    """

    stated: str | tvm.target.Target
    order: tuple[str, ...]
    host: str | tvm.target.Target
    absent: tuple[tuple[str, str], ...] = ()
    device: str = ""
    device_first: bool = True

    @classmethod
    def of(cls, target: str | tvm.target.Target) -> TargetText:
        """InvalidInputError and UnsupportedError name the part that is not known, or not in this build."""
        if not isinstance(target, str):
            return cls(target, (*registry.DEFAULT, TVM), _llvm_target(target))
        # A comma before + or - goes on with a list of CPU features: -mattr=+avx2,+fma.
        parts = [part.strip() for part in re.split(r",(?!\s*[+-])", target) if part.strip()]
        is_known = {part.split()[0] for part in parts} <= {*registry.spellings(), *_HOSTS}
        failed = {} if is_known else registry.register_installed()
        libraries = registry.spellings()
        order: list[str] = []
        hosts: list[str] = []
        for part in parts:
            name = part.split()[0]
            if name in libraries:
                if part != name:
                    raise InvalidInputError(f"target {target!r}: {name} takes no options, got {part!r}")
            elif name in _HOSTS:
                hosts.append(part)
                name = TVM
            elif name in failed:
                raise InvalidInputError(
                    f"target {target!r}: the installed library {name} cannot be used: {failed[name]}; mend "
                    "it, or leave it out"
                )
            else:
                known = ", ".join([*libraries, *_HOSTS])
                raise InvalidInputError(f"target {target!r}: unknown part {name!r}; known are {known}")
            order.append(libraries.get(name, name))
        kinds = [host.split()[0] for host in hosts]
        if len(set(kinds)) < len(kinds):
            raise InvalidInputError(f"target {target!r}: more than one TVM target, expected one for a device")
        if not parts:
            raise InvalidInputError("empty target; expected for example 'dnnl, llvm'")
        kinds = kinds or [TVM]
        absent = {
            name: f"it runs beside {registry.beside(name)}, the target is {kinds[0]}"
            for name in order
            if name != TVM and registry.beside(name) not in kinds
        }
        if absent.keys() >= set(order):
            told = "; ".join(f"{name}: {reason}" for name, reason in absent.items())
            raise UnsupportedError(f"target {target!r}: {told}; use 'dnnl, llvm'")
        if len(kinds) > 1:  # TVM has code for both, behind all libraries
            by_kind = dict(zip(kinds, hosts, strict=True))
            names = tuple(dict.fromkeys([*(name for name in order if name != TVM), TVM]))
            absences = tuple(absent.items())
            return cls(target, names, by_kind[TVM], absences, by_kind[GPU], kinds[0] == GPU)
        names = tuple(dict.fromkeys([*order, TVM]))
        return cls(target, names, hosts[0] if hosts else TVM, tuple(absent.items()))

    @property
    def is_gpu(self) -> bool:
        """Whether there is a GPU and nothing else."""
        return isinstance(self.host, str) and self.host.split()[0] == GPU

    @property
    def has_gpu(self) -> bool:
        return self.is_gpu or bool(self.device)

    def parsed(self, cpu: str = "") -> ParsedTarget:
        """With TVM's target made; InvalidInputError where TVM does not take it.

        LLVM without ``-mcpu`` means ``cpu``, or the CPU of this machine.
        """
        stated = str(self.stated)
        host = _host(stated, self.host, cpu) if isinstance(self.host, str) else self.host
        text = self.device or (self.host if isinstance(self.host, str) else "")
        arch = str(_config(stated, text).get("arch", "")) if text.startswith(GPU) else ""
        device = _cuda(stated, self.device, host) if self.device else None
        return ParsedTarget(self.order, host, self.absent, arch, device, self.device_first)

    def words(self) -> list[str]:
        """Returns the parts that decide, as text; LLVM without a CPU's name means the machine at hand."""
        device = [self.device, f"{self.device_first}"] if self.device else []
        return [*self.order, *device, " ".join(str(self.host).split())]


def parse_target(target: str | tvm.target.Target) -> ParsedTarget:
    """Split a target string and make TVM's target.

    Raises
    ------
    InvalidInputError : an unknown part, or more than one TVM target.
    UnsupportedError : nothing but libraries and devices that this build does not have.
    """
    return TargetText.of(target).parsed()


def _llvm_target(target: object) -> tvm.target.Target:
    import tvm

    if not isinstance(target, tvm.target.Target):
        kind = type(target).__name__
        raise InvalidInputError(f"target: expected text such as 'dnnl, llvm' or a tvm Target, got {kind}")
    if target.kind.name != "llvm":
        raise UnsupportedError(f"target {target.kind.name!r} is not in this build; use an llvm target")
    return target


def _host(target: str, part: str, cpu: str) -> tvm.target.Target:
    return _cuda(target, part) if part.split()[0] == GPU else _llvm(target, part, cpu)


def _config(target: str, part: str) -> dict[str, object]:
    """TVM's target as a mapping, from its kind and flags."""
    kind, *flags = part.split()
    config: dict[str, object] = {"kind": kind}
    for flag in flags:
        name, _, value = flag.lstrip("-").partition("=")
        if not flag.startswith("-") or not value:
            raise InvalidInputError(f"target {target!r}: expected -name=value after {kind}, got {flag!r}")
        config[name] = value.split(",") if name == "mattr" else int(value) if value.isdigit() else value
    return config


def _with_arch(target: tvm.target.Target, arch: str) -> tvm.target.Target:
    import tvm

    return tvm.target.Target({**target.export(), "arch": arch})


def _cuda(target: str, part: str, host: tvm.target.Target | None = None) -> tvm.target.Target:
    """The GPU's target; without ``-arch`` the oldest, until the caller says which device it is.

    Its kernels are started by code for ``host``, for any CPU without.
    """
    import tvm

    beside = {"kind": "llvm"} if host is None else host.export()
    try:
        return tvm.target.Target({"arch": "sm_50", **_config(target, part), "host": beside})
    except Exception as error:
        reason = str(error).strip().splitlines()[-1].partition(" Target creation from config")[0]
        raise InvalidInputError(f"target {target!r}: TVM does not take {part!r}: {reason}") from error


def _llvm(target: str, part: str, cpu: str) -> tvm.target.Target:
    import tvm
    from tvm.target import codegen

    config = _config(target, part)
    if "mtriple" not in config:
        config.setdefault("mcpu", cpu or codegen.llvm_get_system_cpu())
    try:
        host = tvm.target.Target(config)
    except Exception as error:
        reason = str(error).strip().splitlines()[-1].partition(" Target creation from config")[0]
        raise InvalidInputError(f"target {target!r}: TVM does not take {part!r}: {reason}") from error
    # LLVM itself would warn and go on with a generic CPU.
    if "mcpu" in config and config["mcpu"] not in [str(cpu) for cpu in codegen.llvm_get_cpu_archlist(host)]:
        raise InvalidInputError(
            f"target {target!r}: LLVM knows no CPU {config['mcpu']!r}; expected for example "
            f"'llvm -mcpu={codegen.llvm_get_system_cpu()}', which this machine has"
        )
    return host
