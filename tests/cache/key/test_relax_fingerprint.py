"""Two Relax modules are one if all that they compute is."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from tvm_mxplan.cache.key import relax_fingerprint as fingerprint_file
from tvm_mxplan.cache.key.relax_fingerprint import constants_of, relax_fingerprint
from tvm_mxplan.cache.tensors import tensor_bytes
from tvm_mxplan.core.decisions.origin import Origin
from tvm_mxplan.core.fingerprint import content_digest
from tvm_mxplan.passes.origins import with_origins

A = np.arange(6, dtype=np.float32).reshape(2, 3)


def module(first: np.ndarray = A, second: np.ndarray = -A, padding: int = 1, pool: int = 2) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    image = relax.Var("image", relax.TensorType((1, 2, 8, 8), "float32"))
    with builder.function("main", [x, image]):
        with builder.dataflow():
            a = builder.emit(relax.op.add(x, relax.const(first)))
            b = builder.emit(relax.op.multiply(a, relax.const(second)))
            pooled = builder.emit(relax.op.nn.max_pool2d(image, (pool, pool), padding=(padding, padding)))
            out = builder.emit_output(relax.Tuple([b, pooled]))
        builder.emit_func_output(out)
    return builder.get()


def digest(mod: tvm.IRModule) -> str:
    return relax_fingerprint(mod, [content_digest(tensor_bytes(tensor)) for tensor in constants_of(mod)])


def test_the_same_bytes_of_another_type_are_another_constant():
    """A cast of it, whose result is the same type."""

    def cast(array: np.ndarray) -> tvm.IRModule:
        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType((2, 3), "float64"))
        with builder.function("main", [x]):
            constant = relax.const(array, str(array.dtype))
            builder.emit_func_output(
                builder.emit(relax.op.add(x, builder.emit(relax.op.astype(constant, "float64"))))
            )
        return builder.get()

    texts = [digest(cast(A)), digest(cast(A.view(np.int32))), digest(cast(A.view(np.uint32)))]
    assert len(set(texts)) == 3


def test_what_no_text_shows_counts() -> None:
    """The numbers of an attribute are metadata, which is not printed; how many there are is in the hash."""
    mod = module()
    noted = [
        tvm.IRModule({"main": mod["main"].with_attr("note", relax.const(np.ones(count, "float32")))})
        for count in (2, 3, 2)
    ]
    assert noted[0].script(show_meta=False) == noted[1].script(show_meta=False)
    first, second, third = map(digest, noted)
    assert first == third != second


def test_the_same_bytes_in_another_shape_are_another_constant():
    """A reshape of it, whose result is the same type; and as a result that nobody looks at further."""

    def reshaped(*shape: int) -> tvm.IRModule:
        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType((6,), "float32"))
        with builder.function("main", [x]):
            flat = builder.emit(relax.op.reshape(relax.const(A.reshape(shape)), (6,)))
            builder.emit_func_output(builder.emit(relax.op.add(x, flat)))
        return builder.get()

    assert len({digest(reshaped(*shape)) for shape in ((6,), (2, 3), (3, 2), (1, 6), (6, 1), (1, 2, 3))}) == 6


def test_the_same_module_made_twice():
    assert len(constants_of(module())) == 2
    assert digest(module()) == digest(module())


def test_constants_their_places_and_attributes_count():
    bit = A.copy()
    bit.view(np.uint32)[1, 2] ^= 1
    texts = [
        digest(module()),
        digest(module(first=bit)),
        digest(module(second=bit)),
        digest(module(first=-A, second=A)),
        digest(module(padding=0)),
        digest(module(pool=3)),
        digest(module().with_attr("note", "a")),
    ]
    assert len(set(texts)) == len(texts)


def test_origins_count_since_reports_speak_of_them() -> None:
    def named(name: str, kind: str = "Relu") -> str:
        x = relax.Var("x", relax.TensorType((2, 3), "float32"))
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            call = with_origins(relax.op.nn.relu(x), (Origin(name, kind),))
            builder.emit_func_output(builder.emit(call))
        return digest(builder.get())

    assert named("a") == named("a")
    assert len({named("a"), named("b"), named("a", "Clip")}) == 3


def test_the_text_counts_beside_the_structural_hash(monkeypatch) -> None:
    """A structural hash has 64 bits, which alone would not do."""
    monkeypatch.setattr(fingerprint_file.tvm_ffi, "structural_hash", lambda *_, **__: 7)
    assert digest(module(pool=2)) == digest(module(pool=2)) != digest(module(pool=3))
