"""``compile``: a model in, an executable out; the library behind the Python call and the command line."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from . import environment
from .byoc.backend import Backend
from .byoc.onednn.backend import OneDNN
from .cache.compile_cache import CompileCache
from .determinism import Determinism
from .errors import InvalidInputError
from .executable import METADATA, Executable, metadata_text
from .files import check_destination
from .frontend.onnx import import_model, input_names, output_names, read_model
from .options import Options
from .pipeline import build_pipeline
from .recorder import Recorder
from .signature import signature_of
from .targets import ParsedTarget, parse_target
from .tuning.progress import Callback
from .tuning.tuning import Tuning

_BACKENDS: dict[str, type[Backend]] = {"onednn": OneDNN}


def compile(
    model: Any,
    target: str | tvm.target.Target = "dnnl, llvm",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    options: Options | dict[str, Any] | None = None,
    progress: Callback | None = None,
) -> Executable:
    """Compile a model for this machine's CPU.

    Parameters
    ----------
    model : path of an ONNX file, an ``onnx.ModelProto``, or a Relax module whose function is ``main``.
    target : libraries and TVM's target by preference, e.g. ``"dnnl, llvm"`` or ``"llvm -mcpu=x86-64-v3"``.
    shapes : input shapes by name, in place of those in an ONNX model.
    options : see :class:`tvm_mxplan.Options`.
    progress : is called with a :class:`tvm_mxplan.tuning.progress.Progress` after each measurement.

    Returns
    -------
    executable : callable; see :class:`tvm_mxplan.Executable`.

    Raises
    ------
    InvalidInputError : the file, the shapes, the target or an option.
    UnsupportedError : an operator that TVM's importer does not know, or a target not in this build.
    """
    options = Options.of(options)
    parsed = parse_target(target)
    cache = CompileCache(model, shapes, parsed, options)
    if (found := cache.find()) is not None:
        return found
    return _compile(model, shapes, parsed, options, cache, progress, None)


def tune(
    model: Any,
    output: str | os.PathLike[str] | None = None,
    target: str | tvm.target.Target = "dnnl, llvm",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    options: Options | dict[str, Any] | None = None,
    progress: Callback | None = None,
) -> Executable:
    """Measure what a model's plan rests on, and compile it so.

    A run that was killed goes on where it stopped: each measurement is kept as soon as it is made.

    Parameters
    ----------
    model, target, shapes, options, progress : as for :func:`compile`; ``tune`` is ``measure``.
    output : a file for the records, which the option ``tuning_records`` takes; what it holds already is
        known. Without one they are kept in the cache folder alone.

    Returns
    -------
    executable : as from :func:`compile`; ``report.tuning`` says what was measured.

    Raises
    ------
    InvalidInputError : as :func:`compile`, and for files of records that were made on another machine.
    """
    if not isinstance(options, Options):
        options = {**options, "tune": "measure"} if isinstance(options, Mapping) else options
    options = replace(Options.of(options), tune="measure")
    if options.cache == "on_compile":
        options = replace(options, cache="save_reload")
    parsed = parse_target(target)
    path = None if output is None else check_destination(output, Path(output).suffix)
    cache = CompileCache(model, shapes, parsed, options)
    return _compile(model, shapes, parsed, options, cache, progress, path)


def _compile(
    model: Any,
    shapes: Mapping[str, Sequence[int]] | None,
    parsed: ParsedTarget,
    options: Options,
    cache: CompileCache,
    progress: Callback | None,
    output: Path | None,
) -> Executable:
    tuning = None
    if options.tunes and parsed.libraries and not environment.disabled():
        tuning = Tuning(options, parsed.host, progress, output)
    recorder = Recorder()
    if options.deterministic:
        recorder.determinism = Determinism.here(measured=options.tunes)
    start = time.perf_counter()
    mod, inputs, outputs = _import(model, shapes)
    recorder.seconds["import"] = round(time.perf_counter() - start, 3)
    signature = signature_of(mod["main"], inputs, outputs)
    backends = [_BACKENDS[name]() for name in parsed.libraries]
    start = time.perf_counter()
    with parsed.host:
        preferred = {"order": parsed.order, "absent": dict(parsed.absent)}
        pipeline = build_pipeline(
            backends, options, parsed.host, recorder, cache.choices, tuning, **preferred
        )
        planned = pipeline(mod)
    recorder.tuning = tuning.close() if tuning else None
    recorder.seconds["passes"] = round(time.perf_counter() - start, 3)
    start = time.perf_counter()
    planned = _with_metadata(planned, metadata_text(signature, recorder.report))
    built = relax.build(planned, parsed.host, relax_pipeline=None)
    recorder.seconds["build"] = round(time.perf_counter() - start, 3)
    made = Executable(
        built,
        signature,
        recorder.report,
        opcheck=options.opcheck,
        opcheck_folder=options.opcheck_folder,
    )
    return cache.keep(made, recorder.constants)


def _import(
    model: Any, shapes: Mapping[str, Sequence[int]] | None
) -> tuple[tvm.IRModule, list[str] | None, list[str] | None]:
    """The model in Relax, and the names of its inputs and outputs where it has any."""
    if isinstance(model, tvm.IRModule):
        if shapes:
            raise InvalidInputError("shapes are for ONNX models; a Relax module states its own")
        if "main" not in [gvar.name_hint for gvar in model.functions]:
            raise InvalidInputError("the Relax module has no function main; rename the one to compile")
        return model, None, None
    source = "model"
    if isinstance(model, str | os.PathLike):
        source = str(Path(model))
        model = read_model(model)
    if not hasattr(model, "graph"):
        raise InvalidInputError(
            f"cannot compile a {type(model).__name__}; expected a path, an onnx.ModelProto or an IRModule"
        )
    return import_model(model, shapes, source), input_names(model), output_names(model)


def _with_metadata(mod: tvm.IRModule, text: str) -> tvm.IRModule:
    """The lowered module with one more function, which gives ``text``; stock TVM loads and ignores it."""
    builder = relax.BlockBuilder()
    with builder.function(METADATA, []):
        builder.emit_func_output(tvm.ir.StringImm(text))
    function = builder.get()[METADATA].with_attr("global_symbol", METADATA)
    mod = mod.clone()
    mod[METADATA] = function
    return mod
