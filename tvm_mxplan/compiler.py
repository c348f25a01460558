"""From a model to an executable: import, passes, TVM's build."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from . import environment
from .byoc.backend import Backend, DeviceBackend, DeviceChoice
from .cache.compile_cache import CompileCache
from .errors import InvalidInputError, MxplanError, UnsupportedError
from .execution.executable import METADATA, Executable, TargetDevice, metadata_text
from .execution.signature import OUTPUTS, KeptState, conditions_of, signature_of
from .frontend.onnx import import_model, input_names, output_names, read_model
from .frontend.relax.relax_bounds import bounds_of, check_names
from .frontend.relax.relax_checks import check_module
from .frontend.relax.unknown_shapes import unknown_shape
from .frontend.stated_inputs import StatedInputs
from .frontend.states import keep_states
from .options import Options
from .passes.devices import Beside
from .passes.sizes import named_batch
from .pipeline import Given, build_pipeline
from .rates.wanted import wanted_rates
from .report.recorder import Recorder
from .targets import GPU, ParsedTarget
from .tuning.engines import EngineTuning
from .tuning.place import Here, Place
from .tuning.progress import Callback
from .tuning.tuning import Tuning
from .verify.verifier import verifier_of


def build(
    model: Any,
    target: ParsedTarget,
    stated: StatedInputs,
    options: Options,
    cache: CompileCache,
    progress: Callback | None = None,
    records: Path | None = None,
    place: Place | None = None,
) -> Executable:
    """Compile what the cache does not have, and hand it the result; see :func:`tvm_mxplan.compile`.

    Parameters
    ----------
    records : a file that takes what is measured; see :func:`tvm_mxplan.tune`.
    place : the machine to compile for, and to measure on; this one unless it is given.
    """
    place = Here() if place is None else place
    engines = _engine_tuning(options, target, progress, records, place)
    backends, target, device, beside = _on_devices(place, target, options, engines)
    tuning = verifier = None
    if options.tunes and not target.has_gpu:  # where nothing is measured, records are looked at all the same
        tuning = Tuning(options, target.host, progress, records, place)
    if target.libraries and not target.is_gpu and not environment.disabled():
        verifier = verifier_of(options, place)
    recorder = Recorder(place.threads)
    if options.deterministic:
        recorder.determinism = place.determinism(measured=options.tunes)
    start = time.perf_counter()
    mod, inputs, outputs = _import(model, stated)
    states: tuple[KeptState, ...] = ()
    if stated.states:
        if device is not None:
            raise UnsupportedError(
                "states: kept on the CPU alone; for a GPU compile without them, and feed back"
            )
        mod, inputs, outputs, states = keep_states(mod, stated.states, stated.capacity, inputs, outputs)
    recorder.seconds["import"] = round(time.perf_counter() - start, 3)
    bounds = {**bounds_of(mod["main"]), **stated.bounds}
    signature = replace(
        signature_of(mod["main"], inputs, outputs),
        bounds=bounds,
        states=states,
        conditions=conditions_of(mod["main"]),
    )
    works = bool(backends) and not environment.disabled()
    batch = named_batch(mod, bounds, options.batch_sizes) if target.has_gpu and works else None
    rates = wanted_rates(options, place.threads, place.rates, weighs=works and not target.is_gpu)
    start = time.perf_counter()
    with target.host:
        given = Given(
            recorder=recorder,
            choices=cache.choices,
            tuning=tuning,
            verifier=verifier,
            machine=rates,
            beside=beside,
            batch=batch,
            order=target.order,
            absent=dict(target.absent),
        )
        # A GPU's engines are all that is measured of it.
        planning = replace(options, tune="model", tuning_records=None) if engines else options
        pipeline = build_pipeline(backends, planning, target.host, given)
        with _told_of_shapes(mod):
            planned = pipeline(mod)
    closing = tuning or engines
    recorder.tuning = closing.close() if closing else None
    recorder.verification = verifier.close() if verifier else None
    recorder.seconds["passes"] = round(time.perf_counter() - start, 3)
    start = time.perf_counter()
    report = recorder.report
    signature = signature.storing(report.state)
    planned = _with_metadata(planned, metadata_text(signature, report, device))
    with _told_of_shapes(mod):
        built = relax.build(planned, target.host, relax_pipeline=None)
    recorder.seconds["build"] = round(time.perf_counter() - start, 3)
    made = Executable(
        built,
        signature,
        replace(report, seconds=dict(recorder.seconds)),
        opcheck=options.opcheck,
        opcheck_folder=options.opcheck_folder,
        elsewhere=place.elsewhere,
        device=device,
    )
    return cache.keep(made, recorder.constants)


@contextmanager
def _told_of_shapes(mod: tvm.IRModule) -> Iterator[None]:
    """Makes failures in TVM that come from an unknown shape in the module say so."""
    try:
        yield
    except MxplanError:
        raise
    except Exception as error:
        reason = unknown_shape(mod)
        if reason:
            raise UnsupportedError(reason) from error
        raise


def _engine_tuning(
    options: Options, target: ParsedTarget, progress: Callback | None, records: Path | None, place: Place
) -> EngineTuning | None:
    """Times of the engines of a GPU's library, measured or known; None where there are none."""
    if not (options.tunes and target.has_gpu) or environment.disabled():
        return None
    if place.elsewhere:
        raise UnsupportedError(
            "option tune: a GPU is measured where it is, not over RPC; run tvmc tune there"
        )
    name = next((one for one in target.libraries if isinstance(place.backend(one), DeviceBackend)), None)
    return EngineTuning(options, name, target.host, progress, records) if name else None


def _on_devices(
    place: Place, target: ParsedTarget, options: Options, engines: EngineTuning | None
) -> tuple[list[Backend], ParsedTarget, TargetDevice | None, Beside | None]:
    """The target's libraries, each for its device; the target, which knows the device then; the device.

    Where that stands beside the CPU, what passes go by is the last.
    """
    found: list[Backend] = []
    device = beside = None
    for name in target.libraries:
        backend = place.backend(name)
        if not isinstance(backend, DeviceBackend):
            found.append(backend)
            continue
        choice = DeviceChoice(
            options.device_properties,
            target.arch,
            options.tf32,
            options.deterministic,
            options.spare_plans,
            options.cuda_graphs,
            engines.on_device if engines else None,
        )
        made = backend.for_device(choice)
        found.append(made.backend)
        target = target.with_arch(made.arch)
        device = TargetDevice(name, made.title, shared=not target.is_gpu)
        if target.device is not None:
            beside = Beside(target.device, made.rates, target.device_first)
    if target.has_gpu and device is None:
        raise UnsupportedError(f"target {GPU}: no library for it is named, and TVM's code alone is TVM's own")
    return found, target, device, beside


def _import(model: Any, stated: StatedInputs) -> tuple[tvm.IRModule, list[str] | None, list[str] | None]:
    """The model in Relax, and the names of its inputs and outputs where it has any."""
    if isinstance(model, tvm.IRModule):
        if stated.shapes:
            raise InvalidInputError("shapes are for ONNX and Relay models; a Relax module states its own")
        if "main" not in [gvar.name_hint for gvar in model.functions]:
            raise InvalidInputError("the Relax module has no function main; rename the one to compile")
        check_module(model)
        check_names(model["main"], stated.bounds)
        outputs = model["main"].attrs.get(OUTPUTS) if model["main"].attrs else None
        return model, None, [str(name) for name in outputs] if outputs else None
    source, folder = "model", None
    if isinstance(model, str | os.PathLike):
        source, folder = str(Path(model)), Path(model).parent
        model = read_model(model)
    if not hasattr(model, "graph"):
        raise InvalidInputError(
            f"cannot compile a {type(model).__name__}; expected a path, an onnx.ModelProto, an IRModule "
            "or a model of PyTorch's"
        )
    imported = import_model(model, stated.shapes, source, folder, stated.bounds)
    return imported, input_names(model), output_names(model)


def _with_metadata(mod: tvm.IRModule, text: str) -> tvm.IRModule:
    """The lowered module with one more function, which gives ``text``; stock TVM loads and ignores it."""
    builder = relax.BlockBuilder()
    with builder.function(METADATA, []):
        builder.emit_func_output(tvm.ir.StringImm(text))
    function = builder.get()[METADATA].with_attr("global_symbol", METADATA)
    mod = mod.clone()
    mod[METADATA] = function
    return mod
