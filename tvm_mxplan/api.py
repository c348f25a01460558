"""``compile`` and ``tune``: a model in, an executable out, for Python and the command line.

What is needed to find a finished compilation imports no TVM; what compiles (``compiler``) is imported then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import environment
from .byoc import registry
from .cache.compile_cache import CompileCache, default_store
from .cache.plans_file import PlansOnDisk
from .errors import InvalidInputError
from .execution import machine
from .execution.caches import counted, set_capacities
from .execution.executable import Executable
from .export.files import check_destination
from .frontend.formats import Format, format_of
from .frontend.parameters import Parameters, parameters_of
from .frontend.stated_inputs import CAPACITY, Shape, StatedInputs
from .frontend.torch import Examples, is_torch
from .options import Options
from .targets import DEFAULT, TVM, TargetText

if TYPE_CHECKING:
    import tvm

    from .remote.address import Remote
    from .remote.place import There
    from .tuning.progress import Callback


def compile(
    model: Any,
    target: str | tvm.target.Target = DEFAULT,
    *,
    shapes: Mapping[str, Shape] | None = None,
    bounds: Mapping[str, Sequence[int]] | None = None,
    states: Mapping[str, str] | None = None,
    capacity: int = CAPACITY,
    params: Parameters | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    options: Options | dict[str, Any] | None = None,
    progress: Callback | None = None,
    device_properties: str | os.PathLike[str] | None = None,
) -> Executable:
    """Compile a model for this machine's CPU, or for a GPU that need not be here.

    Parameters
    ----------
    model : path of a file, an ``onnx.ModelProto``, a Relax module whose function is ``main``, a
        ``torch.export.ExportedProgram``, or a ``torch.nn.Module`` with example inputs. Files hold ONNX, Relax
        as TVMScript (``mod.script(show_meta=True)``) or JSON (``tvm.ir.save_json``), or Relay as text or
        JSON, as TVM 0.7 to 0.19 wrote them.
    target : libraries and TVM's target by preference, e.g. ``"dnnl, llvm"`` or ``"llvm -mcpu=x86-64-v3"``.
    shapes : input shapes by name, in place of those in an ONNX or Relay model: ``{"ids": ["batch", 128]}``.
        In ONNX a dimension with a name stays open, and each call brings its own number.
    bounds : the smallest and the largest number of open dimensions: ``{"batch": (1, 32)}``. Calls with
        others are refused, and what holds within them may be taken for granted.
    states : results that are inputs of the next call, by the names of these: ``{"past_key": "present_key"}``.
        The executable keeps them, and is called through :meth:`Executable.session`.
    capacity : rows that there is room for in states that grow by some rows in each call.
    params : for Relax and Relay, values of parameters by their names: arrays, or a file (.npz of numpy,
        .params of ``save_param_dict``). They become constants; the other parameters are the inputs.
    args, kwargs : example inputs of a ``torch.nn.Module``, by position and by name.
    dynamic_shapes : which axes of them vary, as ``torch.export.export`` takes it; a name as text stands for
        a ``torch.export.Dim`` without bounds. For an exported program it only names the dimensions.
    options : see :class:`tvm_mxplan.Options`.
    progress : is called with a :class:`tvm_mxplan.tuning.progress.Progress` after each measurement.
    device_properties : the option of that name.

    Returns
    -------
    executable : callable; see :class:`tvm_mxplan.Executable`. One for a GPU is to be exported and run where
        that GPU is.

    Raises
    ------
    InvalidInputError : the file, the shapes, the target or an option.
    UnsupportedError : an operator that TVM's importer does not know, or a target not in this build.
    """
    model = _relax_of_torch(model, Examples(args, kwargs or {}, dynamic_shapes), shapes)
    model, shapes = _opened(model, shapes, params)
    made = Options.of(options)
    if device_properties is not None:
        made = replace(made, device_properties=os.fspath(device_properties))
    stated = StatedInputs.of(shapes, bounds, states, capacity)
    return _compiled(model, target, stated, made, progress, None)


def tune(
    model: Any,
    output: str | os.PathLike[str] | None = None,
    target: str | tvm.target.Target = DEFAULT,
    *,
    shapes: Mapping[str, Shape] | None = None,
    bounds: Mapping[str, Sequence[int]] | None = None,
    states: Mapping[str, str] | None = None,
    capacity: int = CAPACITY,
    params: Parameters | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    options: Options | dict[str, Any] | None = None,
    progress: Callback | None = None,
    remote: Remote | None = None,
) -> Executable:
    """Measure what a model's plan rests on, and compile it so.

    A run that was killed goes on where it stopped: each measurement is kept as soon as it is made.

    Parameters
    ----------
    model, target, shapes, bounds, states, capacity, params, args, kwargs, dynamic_shapes, options, progress :
        as for :func:`compile`; ``tune`` is ``measure``.
    output : a file for the records, which the option ``tuning_records`` takes; what it holds already is
        known. Without one they are kept in the cache folder alone.
    remote : measure on that machine, and compile for it; records are those of that machine.

    Returns
    -------
    executable : as from :func:`compile`; ``report.tuning`` says what was measured. With ``remote``, it is
        to be exported and run there; where the machines differ it does not run here.

    Raises
    ------
    InvalidInputError : as :func:`compile`, and for files of records that were made on another machine.
    RemoteError : ``remote`` cannot be reached, has no tvm_mxplan of this version, or is gone in the middle.
    """
    if isinstance(options, Mapping):
        options = {**options, "tune": "measure"}
    options = replace(Options.of(options), tune="measure")
    if options.cache == "on_compile":
        options = replace(options, cache="save_reload")
    model = _relax_of_torch(model, Examples(args, kwargs or {}, dynamic_shapes), shapes)
    model, shapes = _opened(model, shapes, params)
    records = None if output is None else check_destination(output, Path(output).suffix)
    inputs = StatedInputs.of(shapes, bounds, states, capacity)
    if remote is None:
        return _compiled(model, target, inputs, options, progress, records)
    from .remote.address import Remote
    from .remote.place import connected

    if not isinstance(remote, Remote):
        raise InvalidInputError(f"remote={remote!r}: expected a tvm_mxplan.Remote")
    with connected(remote) as place:
        return _compiled(model, target, inputs, options, progress, records, place)


def _opened(
    model: Any, shapes: Mapping[str, Shape] | None, params: Parameters | None
) -> tuple[Any, Mapping[str, Shape] | None]:
    """The model with its parameters in it, and shapes that are still to be given to it.

    A file of Relax or Relay is read now; one of ONNX is left to the cache, which reads it without TVM.
    """
    path = Path(model) if isinstance(model, str | os.PathLike) else None
    found = Format.ONNX if path is None else format_of(path) or Format.ONNX
    if path is not None and found is not Format.ONNX:
        from .frontend.doors import opened

        return opened(path, found, shapes, parameters_of(params)), None
    if params is None:
        return model, shapes
    if path is not None or hasattr(model, "graph"):
        raise InvalidInputError("params are for Relax and Relay models; an ONNX model has its own inside")
    from .frontend.doors import bound

    return bound(model, parameters_of(params)), shapes


def _relax_of_torch(model: Any, examples: Examples, shapes: Mapping[str, Shape] | None) -> Any:
    """A model of PyTorch's as a Relax module; others as they are."""
    if not is_torch(model):
        if examples:
            raise InvalidInputError(
                f"args, kwargs, dynamic_shapes: for models of PyTorch's, not for a {type(model).__name__}"
            )
        return model
    if shapes:
        raise InvalidInputError("shapes are for ONNX models; for one of PyTorch's say dynamic_shapes")
    from .frontend.torch.model import relax_module

    return relax_module(model, examples)


def _compiled(
    model: Any,
    target: str | tvm.target.Target,
    inputs: StatedInputs,
    options: Options,
    progress: Callback | None,
    records: Path | None,
    place: There | None = None,
) -> Executable:
    if options.memory_budget is not None:
        raise InvalidInputError(
            "option memory_budget is of steps of training (tvm_mxplan.training.compile); order=memory "
            "makes arenas of other functions smaller"
        )
    if options.device_properties is not None and not Path(options.device_properties).is_file():
        raise InvalidInputError(
            f"{options.device_properties}: no such file; expected the properties of a GPU, as tvmc "
            "device-properties -o FILE writes them"
        )
    stated = TargetText.of(target)
    machine.start_ours()  # it reads the environment, which options come before
    set_capacities(options.primitive_cache, options.weights_cache)
    counts = counted()
    # Compilations are kept for this machine's CPU alone, for other devices their plans.
    here = place is None and not stated.has_gpu
    cached = options if here else replace(options, cache="disabled")
    cache = CompileCache(model, inputs, stated, cached)
    executable = cache.find()
    plans = _plans_on_disk(stated, options) if place is None else []
    if executable is None:
        machine.check_compiler()
        from .compiler import build

        parsed = stated.parsed(place.cpu if place else "")
        executable = build(model, parsed, inputs, options, cache, progress, records, place)
    for kept in plans:
        kept.keep()
        executable.amend_report(cache=kept.report)
    executable.amend_report(process_caches=counts())
    return executable


def _plans_on_disk(target: TargetText, options: Options) -> list[PlansOnDisk]:
    """Files of plans of the libraries that make some ahead, where finished compilations are to be kept."""
    if not target.has_gpu or options.cache != "on_compile" or environment.disabled():
        return []
    engines = [registry.engine(name) for name in target.order if name != TVM]
    return [PlansOnDisk(engine, default_store()) for engine in engines if engine.keeps_plans]
