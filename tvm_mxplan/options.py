"""Options of a compilation: one immutable value, checked when it is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from . import environment
from .core.decisions.precision import AS_STATED, PRECISIONS, WISHES, Precision
from .core.fingerprint import content_digest
from .core.policies import POLICIES, RULES, Policy, Rule
from .errors import InvalidInputError
from .targets import implementations

_OFF = "off"
_FAMILIES = ("plain", "channels_last", "blocked")
TUNING = ("off", "model", "measure")
STRATEGIES = ("latency", "throughput", "memory", "energy", "joules")
VERIFY = ("new", "all", "off")
CACHES = ("on_compile", "save_reload", "disabled")
_LATER = ("f16", "int8")
"""Precisions that others offer, and this does not yet, or not of single operators."""
_OUTSIDE = {"fingerprint": False}
"""Marks a field that decides nothing about the result: two compilations that differ in it are one."""


@dataclass(frozen=True)
class Options:
    """The options that a user can choose.

    Attributes
    ----------
    layouts : ``cost`` (default) chooses over the whole region; ``any`` takes what the library picks for each
        operator alone; ``channels_last``, ``blocked`` and ``plain`` use one layout wherever it is possible;
        ``naive`` also reorders around every operator and serves as a yardstick.
    tune : ``model`` estimates what operators cost in each layout; ``measure`` times operators, groups of
        them and whole plans on this machine; ``off`` weighs no costs: what is left to ``cost`` gets channels
        last and direct convolutions.  By default as TVM_MXPLAN_AUTOTUNE says (0 for off, 1 for model, 2 for
        measure), else ``model``.
    tune_for : what whole plans are compared by where they are measured: ``latency`` (default) of one call;
        ``throughput`` of an instance of one thread on each processor; ``memory``, the bytes of arenas and
        packed weights; ``energy``, the bytes that steps read and write; ``joules`` where the machine counts
        them.  Only the first two take times of operators, the others compare plans alone.
    tune_seconds : what measuring may take, for the whole model.
    tune_trials : how many measurements may be made; None (default) for no limit.
    tuning_records : a file of ``tvmc tune`` to start from; with ``model``, what it knows counts and nothing
        is measured.
    convolutions : ``cost`` (default) chooses an algorithm for each; ``direct``, ``winograd_f2`` and
        ``winograd_f4`` (Winograd's with tiles of 2x2, for filters of 3x3 and 5x5, and of 4x4, for 3x3) use
        that one wherever it is possible.
    max_relative_error : what the algorithms chosen for speed, and with ``precision=auto`` roundings to
        bfloat16, may add to the relative error (in the L2 norm) of the model's results, by their own
        statements.
    precision : ``bf16`` multiplies in bfloat16, and stores values in it between operators, where that is
        estimated to be faster; ``f32`` computes in float32; ``model`` (default) does for each operator what
        the model states, where float16 counts as float32; ``auto`` takes bfloat16 where that is faster and
        ``max_relative_error`` reaches for it; ``f16`` is ``f32``, with a line in the report, as no library
        here computes in float16.  Sums, softmax, norms' statistics and what the
        model takes and returns stay in the types that they have.  On a processor without instructions for
        bfloat16 everything is computed in float32, and the report says so.
    precision_for : the same for single operators by their names, or for kinds: ``f32`` or ``bf16``.  A name
        in ``bf16`` is a demand, and an error where its library refuses.  A mapping, or text such as
        ``conv2d_0=f32,softmax=f32``.  The name of an ONNX node stands for all operators that come from it.
    memory : ``reuse`` (default) lets values that are not alive together share bytes; ``no_reuse`` gives each
        its own, for comparison and debugging.  Symbolic shapes are planned at run time, always with reuse.
    order : ``keep`` (default) runs operators as the model states them; ``memory`` lets them run in an order
        that needs a smaller arena, where there is one, which may take longer.
    memory_budget : of a step of training: its arena takes at most so many bytes, or, below 1, such a share of
        what it takes without; operators run again for it, the cheapest ones (``report.recomputation``).
    layers : what single operators get in place of what is chosen, by the names that the report prints:
        ``off`` leaves one to TVM; a layout (``nhwc``, ``nChw16c``, ``plain``, ``channels_last``,
        ``blocked``) is forced.  A mapping, or text such as ``conv2d_3=off,conv2d_4=nhwc``.  The name of an
        ONNX node, or the last part of it, stands for all operators that come from the node.
    prefer : who runs operators in place of the first in the target's order, by their kind or their name, or
        that of a node: ``dnnl`` or ``llvm``.  A kind falls back to the target's order where its library
        refuses; a name is a demand, and an error where that library refuses.  A mapping, or text:
        ``softmax=llvm,conv2d_3=dnnl``.
    machine : what the machine can do, by which costs are estimated: ``measured`` (default) once, in at most
        two seconds, and kept in the cache folder unless ``cache`` is ``disabled``; ``default`` for stated
        rates; or a file that gives them (``tvm_mxplan.core.machine``), by which plans are the same anywhere.
        TVM_MXPLAN_MACHINE says what it is where it is not given.
    deterministic : every call gives the same bits, in any process, and so does a second compile with
        ``tune=model``; ``Executable.determinism_lost`` says where that cannot be.
    device_properties : for targets of a GPU, a file of its properties, as ``tvmc device-properties`` writes
        them where the GPU is: it need not be in the machine that compiles.
    tf32 : products of float32 may be computed with TF32's 10 bits on GPUs that have it; off by default.
    spare_plans : which plans of a GPU stand by for one that fails where it runs: ``compiled`` (default) those
        that take no time to make, ``any``, which may double the time that plans take, or ``none``.
    cuda_graphs : the steps of a region on a GPU are kept as a CUDA graph when they run again, and launched as
        one; off by default.  Where that cannot be, they run one by one, and ``failed_plans`` says why.
    batch_sizes : of a model with a named batch on a GPU: sizes that execution plans are made for beside the
        powers of two up to its bound, and that one.  Several, or text such as ``3,6``.
    opcheck : every call works each step out again in float64 and raises InternalError at the first that
        differs (see :mod:`tvm_mxplan.opcheck`); slow.  Not exported with a library.
    opcheck_folder : where that step is then written, for a replay; nothing is written without.
    verify : ``new`` (default) runs each kernel of the plan against an independent implementation, once on a
        machine: what agreed is remembered in the cache folder unless ``cache`` is ``disabled``, what did not
        is refused and the next best taken.  ``all`` checks again what is remembered; ``off`` checks nothing.
    cache : ``on_compile`` keeps finished compilations on disk and reads them again; ``save_reload`` (default)
        writes none, notes choices for ``save_cache`` and replays those of ``load_cache``; ``disabled`` does
        neither.  Records of ``tune=measure`` are kept on disk unless it is ``disabled``.
    packed_weights : whether what ``on_compile`` writes holds weights as this machine's primitives want them
        (default), so that a hit uses them where the file is mapped; without, the file is smaller.
    primitive_cache, weights_cache : how many primitives, how many MiB of packed weights the process keeps
        beyond their last use from this compilation on; 0 switches a cache off, None (default) leaves it.
    dump_after : names of phases of the pipeline (``tvm_mxplan.pipeline.PHASES``), or ``all``: what each hands
        on is printed as soon as it is there.  Several, or text such as ``layouts,memory``.  A target without
        libraries runs none of them.
    dump_folder : a folder that takes a file ``PHASE.txt`` for each, in place of printing.
    """

    layouts: Policy = "cost"
    tune: str = field(default_factory=environment.autotune)
    tune_for: str = "latency"
    tune_seconds: float = 60.0
    tune_trials: int | None = None
    tuning_records: str | None = None
    precision: str = AS_STATED
    precision_for: Mapping[str, Precision] = field(default_factory=dict, hash=False)
    memory: str = "reuse"
    order: str = "keep"
    memory_budget: int | float | None = None
    convolutions: Rule = "cost"
    max_relative_error: float = 1e-4
    layers: Mapping[str, str] = field(default_factory=dict, hash=False)
    prefer: Mapping[str, str] = field(default_factory=dict, hash=False)
    machine: str = field(default_factory=environment.machine, metadata=_OUTSIDE)
    deterministic: bool = False
    verify: str = "new"
    device_properties: str | None = None
    tf32: bool = False
    spare_plans: str = "compiled"
    cuda_graphs: bool = False
    batch_sizes: Sequence[int] = ()
    opcheck: bool = field(default=False, metadata=_OUTSIDE)
    opcheck_folder: str | None = field(default=None, metadata=_OUTSIDE)
    cache: str = field(default="save_reload", metadata=_OUTSIDE)
    packed_weights: bool = field(default=True, metadata=_OUTSIDE)
    primitive_cache: int | None = field(default=None, metadata=_OUTSIDE)
    weights_cache: int | None = field(default=None, metadata=_OUTSIDE)
    dump_after: Sequence[str] = field(default=(), metadata=_OUTSIDE)
    dump_folder: str | None = field(default=None, metadata=_OUTSIDE)

    def __post_init__(self) -> None:
        _one_of("layouts", self.layouts, POLICIES)
        _one_of("tune", self.tune, TUNING)
        _one_of("tune_for", self.tune_for, STRATEGIES)
        _precision("precision", self.precision, WISHES)
        object.__setattr__(self, "precision_for", _precisions(self.precision_for))
        _one_of("memory", self.memory, ("reuse", "no_reuse"))
        _one_of("order", self.order, ("keep", "memory"))
        if self.memory_budget is not None:
            expected = "of bytes, or above 0 and below 1 for a share"
            _number("memory_budget", self.memory_budget, expected, lambda x: 0 < x < 1 or x == int(x) >= 1)
        _one_of("convolutions", self.convolutions, RULES)
        _number("tune_seconds", self.tune_seconds, "above 0", lambda x: x > 0)
        if self.tune_trials is not None:
            _number("tune_trials", self.tune_trials, "of at least 1", lambda x: x >= 1)
        if isinstance(self.tuning_records, os.PathLike):
            object.__setattr__(self, "tuning_records", os.fspath(self.tuning_records))
        if not isinstance(self.tuning_records, str | None):
            raise InvalidInputError(f"option tuning_records={self.tuning_records!r}; expected a path")
        if self.tune == "off" and self.tuning_records is not None:
            raise InvalidInputError("option tuning_records: tune=off weighs no costs; use model or measure")
        if self.tune != "measure" and self.tune_for != "latency" and self.tuning_records is None:
            raise InvalidInputError(f"option tune_for={self.tune_for!r} compares plans; give tune=measure")
        _number("max_relative_error", self.max_relative_error, "of at least 0", lambda x: x >= 0)
        if isinstance(self.machine, os.PathLike):
            object.__setattr__(self, "machine", os.fspath(self.machine))
        if not isinstance(self.machine, str) or not self.machine:
            raise InvalidInputError(
                f"option machine={self.machine!r}; expected measured, default or a path to a file of rates"
            )
        _one_of("deterministic", self.deterministic, (True, False))
        _one_of("verify", self.verify, VERIFY)
        if isinstance(self.device_properties, os.PathLike):
            object.__setattr__(self, "device_properties", os.fspath(self.device_properties))
        if not isinstance(self.device_properties, str | None):
            raise InvalidInputError(f"option device_properties={self.device_properties!r}; expected a path")
        _one_of("tf32", self.tf32, (True, False))
        _one_of("cuda_graphs", self.cuda_graphs, (True, False))
        _one_of("spare_plans", self.spare_plans, ("compiled", "any", "none"))
        object.__setattr__(self, "batch_sizes", _sizes("batch_sizes", self.batch_sizes))
        _one_of("opcheck", self.opcheck, (True, False))
        _one_of("cache", self.cache, CACHES)
        _one_of("packed_weights", self.packed_weights, (True, False))
        for name in ("primitive_cache", "weights_cache"):
            capacity = getattr(self, name)
            if capacity is not None and (type(capacity) is not int or capacity < 0):
                raise InvalidInputError(f"option {name}={capacity!r}; expected a whole number from 0")
        if not isinstance(self.opcheck_folder, str | None):
            raise InvalidInputError(f"option opcheck_folder={self.opcheck_folder!r}; expected a path")
        object.__setattr__(self, "dump_after", _names("dump_after", self.dump_after, "layouts,memory"))
        if isinstance(self.dump_folder, os.PathLike):
            object.__setattr__(self, "dump_folder", os.fspath(self.dump_folder))
        if not isinstance(self.dump_folder, str | None):
            raise InvalidInputError(f"option dump_folder={self.dump_folder!r}; expected a path")
        if self.dump_folder is not None and not self.dump_after:
            raise InvalidInputError("option dump_folder: nothing to write; name phases in dump_after")
        object.__setattr__(self, "layers", _layers(self.layers))
        object.__setattr__(self, "prefer", _prefer(self.prefer))
        for name in self.layers_off & self.prefer.keys():
            if self.prefer[name] != "llvm":
                raise InvalidInputError(
                    f"options layers and prefer: {name} is switched off and wanted in {self.prefer[name]}"
                )

    @property
    def tunes(self) -> bool:
        """Whether something is to be measured, or was."""
        return self.tune == "measure" or self.tuning_records is not None

    @property
    def weighs(self) -> bool:
        """Whether costs decide anything, or are told."""
        return self.tune != _OFF

    @property
    def policy(self) -> Policy:
        """``layouts``, or what stands for it where no costs are weighed."""
        return "channels_last" if self.tune == _OFF and self.layouts == "cost" else self.layouts

    @property
    def rule(self) -> Rule:
        """``convolutions``, or what stands for it where no costs are weighed."""
        # Winograd's algorithms have no code for plain images.
        unweighed = self.tune == _OFF and self.convolutions == "cost"
        return "direct" if self.layouts == "plain" or unweighed else self.convolutions

    @property
    def layers_off(self) -> frozenset[str]:
        """Names of the operators that are left to TVM."""
        return frozenset(name for name, choice in self.layers.items() if choice == _OFF)

    @property
    def layer_layouts(self) -> dict[str, str]:
        """Layouts of single operators, by their names."""
        return {name: choice for name, choice in self.layers.items() if choice != _OFF}

    @classmethod
    def of(cls, options: Options | dict[str, Any] | None) -> Options:
        """Options from a mapping; InvalidInputError names an unknown field and the known ones."""
        if options is None:
            return cls()
        if isinstance(options, Options):
            return options
        if not isinstance(options, Mapping):
            kind = type(options).__name__
            raise InvalidInputError(f"options: expected an Options or a dict, got {kind}")
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise InvalidInputError(f"unknown option {unknown[0]!r}; the options are {', '.join(known)}")
        return cls(**options)

    def fingerprinted(self) -> dict[str, Any]:
        """The fields that a finished compilation depends on, by name; each field says whether it is one."""
        kept = [field.name for field in fields(self) if field.metadata.get("fingerprint", True)]
        values = {name: getattr(self, name) for name in kept}
        # Kernels that are checked again give the same plans as those that were checked once.
        values["verify"] = self.verify != _OFF
        for name in ("tuning_records", "device_properties"):
            if values[name] is not None:
                values[name] = _content(values[name])
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _content(path: str) -> str:
    """A digest of the file; '' where it cannot be read, which is an error elsewhere."""
    try:
        return content_digest(Path(path).read_bytes()).hex()
    except OSError:
        return ""


def _layers(given: object) -> dict[str, str]:
    """The option ``layers`` as a mapping; InvalidInputError shows how it is written."""
    from .core.layout.layout_names import layout_named

    given = _mapping("layers", given, "conv2d_3=off,conv2d_4=nhwc")
    for name, choice in given.items():
        if choice in (_OFF, *_FAMILIES):
            continue
        try:
            layout_named(str(choice))
        except ValueError:
            raise InvalidInputError(
                f"option layers: {name}={choice!r}; expected off, {', '.join(_FAMILIES)} or a layout's name"
            ) from None
    return given


def _prefer(given: object) -> dict[str, str]:
    """The option ``prefer`` as a mapping to the names that reports use."""
    given = _mapping("prefer", given, "softmax=llvm,conv2d_3=dnnl")
    known_as = implementations()
    for name, choice in given.items():
        if choice not in known_as:
            known = ", ".join(known_as)
            raise InvalidInputError(f"option prefer: {name}={choice!r}; expected one of {known}")
    return {name: known_as[choice] for name, choice in given.items()}


def _precisions(given: object) -> dict[str, Precision]:
    """The option ``precision_for`` as a mapping."""
    given = _mapping("precision_for", given, "conv2d_0=f32,softmax=f32")
    return {name: _precision(f"precision_for: {name}", choice, PRECISIONS) for name, choice in given.items()}


def _precision(name: str, value: object, known: tuple[str, ...]) -> Any:
    if value in known:
        return value
    there = f"{', '.join(known[:-1])} or {known[-1]}"
    if value in _LATER:
        raise InvalidInputError(f"option {name}={value!r} is not there yet; expected {there}")
    raise InvalidInputError(f"option {name}={value!r}; expected {there}")


def _mapping(option: str, given: object, example: str) -> dict[str, str]:
    """A mapping from names of operators, or its text."""
    if isinstance(given, str):
        pairs = [part.partition("=") for part in given.split(",") if part.strip()]
        given = {name.strip(): choice.strip() for name, _, choice in pairs}
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"option {option}={given!r}; expected for example {example!r}")
    return dict(given)


def _names(option: str, given: object, example: str) -> tuple[str, ...]:
    """Several names, or their text."""
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",") if part.strip()]
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise InvalidInputError(f"option {option}={given!r}; expected for example {example!r}")
    return tuple(given)


def _sizes(option: str, given: object) -> tuple[int, ...]:
    """Several numbers, or their text."""
    parts = _names(option, given, "3,6") if isinstance(given, str) else given
    if isinstance(parts, Sequence) and all(type(one) is int or str(one).isdigit() for one in parts):
        sizes = tuple(int(one) for one in parts)
        if all(size >= 1 for size in sizes):
            return tuple(sorted(set(sizes)))
    raise InvalidInputError(f"option {option}={given!r}; expected numbers from 1, for example '3,6'")


def _one_of(name: str, value: object, allowed: tuple[str | bool, ...]) -> None:
    if value not in allowed:
        raise InvalidInputError(f"option {name}={value!r}; expected one of {', '.join(map(str, allowed))}")


def _number(name: str, value: object, expected: str, accepts: Callable[[float], bool]) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not accepts(value):  # type: ignore[arg-type]
        raise InvalidInputError(f"option {name}={value!r}; expected a number {expected}")
