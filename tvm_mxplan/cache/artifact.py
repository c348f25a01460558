"""A finished compilation as entries of a cache file, and back, without a linker in between.

    json/artifact      signature, report, and the tree of modules:
                       {"kind", "imports", "bytes" | "region" | "kernels": name of what follows}
    bytes/<n>          what a module writes of itself: the VM's code, TVM's constants
    region/<n>         a region of a library's without its weights, which the tree lists as numbers of
    weights/<n>        a constant, or a form of one, as a primitive wants it
    program/<n>        a region's program, where its weights are kept plain; its constants are listed as
                       {"dtype", "shape", "initializer": digest} or {"dtype", "shape", "constant": n}
    constant/<n>       bytes of a constant that is no initializer of the model
    object/<n>, library/<n>    TVM's own kernels, to export again and to run

Packed weights are used where the file is mapped.  Of plain ones, a constant that is an initializer of the
model, byte for byte, is not written: who looks up this file has just hashed the model, so its bytes are at
hand and known to be right.  Regions with symbolic shapes keep theirs plain.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tvm_ffi

from ..byoc import region_module, registry
from ..byoc.engine import Engine
from ..core.fingerprint import Buffer, content_digests
from ..errors import UnsupportedError
from ..execution import machine
from ..execution.signature import Signature
from ..report.stored_report import StoredReport
from .container import Container, Entry, UnusableCache
from .tensors import as_array, copy_together, tensor_bytes

if TYPE_CHECKING:
    import tvm
    from tvm.relax.vm_build import VMExecutable

    from ..report.report import Report

_KERNELS = ("llvm",)
_BULK = ("weights", "constant")  # what is not hashed again each time
_SOURCE = "c"  # TVM puts an empty one beside regions, for linkers only, and needs its compiler to read it
_WEIGHTS = "mxplan.weights"  # what exports a region's constants as data; made anew from the region


def entries_of(
    module: VMExecutable,
    signature: Signature,
    report: Report,
    constants: Mapping[str, Sequence[tvm.runtime.Tensor]],
    initializers: Collection[bytes],
    packed: bool,
) -> list[Entry]:
    """A compilation that was just built.

    Parameters
    ----------
    constants : of each region, by its symbol.
    initializers : digests of the model's.
    packed : whether weights are kept as this machine's primitives want them.

    Raises
    ------
    UnsupportedError : a module that cannot be kept, or no compiler to link TVM's kernels with.
    """
    saver = _Saver(constants, initializers, packed)
    tree = saver.node(module.mod)
    text = {"signature": signature.to_json(), "report": report.to_json(), "tree": tree}
    return [Entry("json", "artifact", json.dumps(text).encode()), *saver.entries]


def restore(
    container: Container, initializer: Callable[[bytes], Buffer], source: str
) -> tuple[Restored, Signature, StoredReport]:
    """The compilation in a cache file; ``initializer`` gives the model's bytes of a digest.

    ``source`` names the file.

    Raises
    ------
    UnusableCache : entries that are missing, damaged, or not what this build writes.
    """
    machine.start()
    try:
        container.check(trusted=_BULK)
        text = json.loads(bytes(container.read("json", "artifact")))
        loader = _Loader(container, initializer)
        runnable = loader.tree(text["tree"], exportable=False)
        signature, report = Signature.from_json(text["signature"]), StoredReport(text["report"], source)
        return Restored(runnable, lambda: loader.tree(text["tree"], exportable=True)), signature, report
    except UnusableCache:
        raise
    except Exception as error:  # digests hold, so it is of another build in spite of its fingerprint
        raise UnusableCache(f"its content cannot be used ({type(error).__name__}: {error})") from error


class Restored:
    """Runs TVM's kernels from the library that was linked once.

    Attributes
    ----------
    mod : the runtime module.
    """

    def __init__(self, runnable: Any, exportable: Callable[[], Any]) -> None:
        self.mod = runnable
        self._exportable = exportable

    def retyped(self) -> VMExecutable:
        """TVM's executable; it exports the object from which the library was linked."""
        from .restored import RestoredExecutable

        return RestoredExecutable(machine.retyped(self.mod), self._exportable)


class _Saver:
    def __init__(
        self,
        constants: Mapping[str, Sequence[tvm.runtime.Tensor]],
        initializers: Collection[bytes],
        packed: bool,
    ) -> None:
        self.entries: list[Entry] = []
        self._packed = packed
        self._constants = constants
        self._initializers = frozenset(initializers)
        self._modules: list[Any] = []

    def node(self, module: Any) -> dict[str, Any]:
        if any(module.same_as(other) for other in self._modules):
            raise UnsupportedError(f"a {module.kind} module is imported twice")
        self._modules.append(module)
        node = {"kind": module.kind, **self._content(module)}
        imports = [child for child in module.imports if child.kind != _WEIGHTS]
        return {**node, "imports": [self.node(child) for child in imports]}

    def _content(self, module: Any) -> dict[str, Any]:
        engine = registry.engine_of(module)
        if engine is not None:
            return {"region": {"library": engine.name, **self._region(module, engine)}}
        if module.kind in _KERNELS:
            return {"kernels": self._kernels(module)}
        if not module.is_binary_serializable():
            raise UnsupportedError(f"a {module.kind} module cannot be written")
        return {"bytes": self._add("bytes", region_module.module_bytes(module))}

    def _region(self, module: Any, engine: Engine) -> dict[str, Any]:
        from ..core.program import codec  # which a hit does without

        symbol = region_module.symbol_of(module)
        if symbol not in self._constants:
            raise UnsupportedError(f"region {symbol} was not made by this compilation")
        program = region_module.program_bytes(module)
        if self._packed and not codec.decode(program).symbols:
            head, weights = engine.save_packed(module)
            numbers = [self._add("weights", part) for part in weights]
            return {"symbol": symbol, "region": self._add("region", head), "weights": numbers}
        return {"symbol": symbol, **self._plain(program, self._constants[symbol])}

    def _plain(self, program: bytes, tensors: Sequence[tvm.runtime.Tensor]) -> dict[str, Any]:
        payloads = [tensor_bytes(tensor) for tensor in tensors]
        rows = []
        for tensor, payload, digest in zip(tensors, payloads, content_digests(payloads), strict=True):
            if digest in self._initializers:
                place = {"initializer": digest.hex()}
            else:
                place = {"constant": self._add("constant", payload, digest)}
            rows.append({"dtype": str(tensor.dtype), "shape": [int(dim) for dim in tensor.shape], **place})
        return {"program": self._add("program", program), "constants": rows}

    def _kernels(self, module: Any) -> str:
        from tvm.support import cc

        if cc.get_cc() is None:
            raise UnsupportedError("no C compiler to link TVM's kernels with")
        with tempfile.TemporaryDirectory(prefix="mxplan-") as folder:
            compiled, linked = Path(folder) / "kernels.o", Path(folder) / "kernels.so"
            module.write_to_file(str(compiled), "o")
            cc.create_shared(str(linked), [str(compiled)])
            name = self._add("object", compiled.read_bytes())
            self.entries.append(Entry("library", name, linked.read_bytes()))
        return name

    def _add(self, kind: str, payload: Buffer, digest: bytes | None = None) -> str:
        name = str(sum(entry.kind == kind for entry in self.entries))
        self.entries.append(Entry(kind, name, payload, digest))
        return name


class _Loader:
    def __init__(self, container: Container, initializer: Callable[[bytes], Buffer]) -> None:
        self._container = container
        self._initializer = initializer
        self._regions: dict[str, Any] = {}
        self._weights: dict[str, Any] = {}

    def tree(self, node: Mapping[str, Any], exportable: bool) -> Any:
        """The modules of a node; regions are made once and shared by both trees."""
        module = self._module(node, exportable)
        for child in node["imports"]:
            if not exportable and child["kind"] == _SOURCE and not child["imports"]:
                continue
            module.import_module(self.tree(child, exportable))
            if "region" in child:
                module.import_module(self._weights[child["region"]["symbol"]])
        return module

    def _module(self, node: Mapping[str, Any], exportable: bool) -> Any:
        if "region" in node:
            region = node["region"]
            if region["symbol"] not in self._regions:
                made = self._region(region)
                self._regions[region["symbol"]] = made
                self._weights[region["symbol"]] = self._engine(region).split_weights(made)
            return self._regions[region["symbol"]]
        if "kernels" in node:
            return self._kernels(node["kernels"], exportable)
        load = tvm_ffi.get_global_func(f"ffi.Module.load_from_bytes.{node['kind']}")
        return load(bytes(self._container.read("bytes", node["bytes"])))

    def _engine(self, region: Mapping[str, Any]) -> Engine:
        return registry.engine(region["library"])

    def _region(self, region: Mapping[str, Any]) -> Any:
        if "weights" in region:
            head = bytes(self._container.read("region", region["region"]))
            parts = [self._container.read("weights", number) for number in region["weights"]]
            arrays = [as_array(part, "uint8", [len(part)]) for part in parts]
            return self._engine(region).load_packed(head, arrays, mapped=True)
        rows = region["constants"]
        known = [number for number, row in enumerate(rows) if "initializer" in row]
        copies = copy_together([self._initializer(bytes.fromhex(rows[n]["initializer"])) for n in known])
        payloads: dict[int, Buffer] = dict(zip(known, copies, strict=True))
        for number, row in enumerate(rows):
            if number not in payloads:
                payloads[number] = self._container.read("constant", row["constant"])
        arrays = [as_array(payloads[number], row["dtype"], row["shape"]) for number, row in enumerate(rows)]
        program = bytes(self._container.read("program", region["program"]))
        return self._engine(region).create_module(region["symbol"], program, arrays)

    def _kernels(self, name: str, exportable: bool) -> Any:
        kind, load = ("object", _load_object) if exportable else ("library", tvm_ffi.load_module)
        with tempfile.TemporaryDirectory(prefix="mxplan-") as folder:
            path = Path(folder) / ("kernels.o" if exportable else "kernels.so")
            path.write_bytes(self._container.read(kind, name))
            return load(path)


def _load_object(path: Path) -> Any:
    return tvm_ffi.get_global_func("runtime.ModuleLoadStaticLibrary")(str(path), [])
