"""Region programs as bytes: what the runtime decodes and a compiled artifact carries.

Little-endian; strings are u32 length + UTF-8; counts are u32, other integers i64, reals f64.

    "MXPR" version:u32 name arena_bytes
    symbols  n * (name input axis)
    values   n * (name dtype kind:u8 layout index state alias_of alias_offset:dim offset nbytes rank:u32 dim*)
    steps    n * (kind name library implementation scratchpad_offset scratchpad_bytes refused prepared attrs
             operands post_ops)
    refused  n * name
    prepared u32 length + bytes
    attrs    n * (name type:u8 value)      type: 0 i64, 1 f64, 2 string, 3 u32 count + i64*, 4 bool (u8)
    operands n * (role value)
    post_ops n * (type:u8 ...)             0 eltwise: name alpha beta; 1 binary: name value; 2 sum: scale;
                                           3 depthwise: kernel stride padding
    dim      type:u8 ...                   0 constant: i64; 1 symbol: u32; 2 + k: operator k, left, right
"""

from __future__ import annotations

import struct
from dataclasses import fields
from functools import cache, lru_cache

from . import program as ir
from .dims import OPERATORS, Dim, Expr, Symbol
from .program_rules import ProgramError, check_program

MAGIC = b"MXPR"
_MAX_EXPRESSION_DEPTH = 64


class DecodeError(ValueError):
    """The bytes are no region program of this version."""


def encode(program: ir.Program) -> bytes:
    """Serialise a program; ``decode(encode(p)) == p``."""
    w = _Writer({binding.name: i for i, binding in enumerate(program.symbols)})
    w.raw(MAGIC)
    w.u32(ir.VERSION)
    w.string(program.name)
    w.i64(program.arena_bytes)
    w.u32(len(program.symbols))
    for binding in program.symbols:
        w.string(binding.name)
        w.i64(binding.input)
        w.i64(binding.axis)
    w.u32(len(program.values))
    for value in program.values:
        w.value(value)
    w.u32(len(program.steps))
    for step in program.steps:
        w.step(step)
    return bytes(w.buffer)


def decode(data: bytes) -> ir.Program:
    """Inverse of :func:`encode`; raises :class:`DecodeError` on anything else."""
    r = _Reader(data)
    if r.take(4) != MAGIC:
        raise DecodeError("not a region program: the first four bytes are not MXPR")
    version = r.u32()
    if version != ir.VERSION:
        raise DecodeError(f"region program version {version}, this build reads {ir.VERSION}")
    name, arena_bytes = r.string(), r.i64()
    symbols = tuple(ir.SymbolBinding(r.string(), r.i64(), r.i64()) for _ in range(r.count(20)))
    r.symbols = [binding.name for binding in symbols]
    values = tuple(r.value() for _ in range(r.count(62)))
    steps = tuple(r.step() for _ in range(r.count(44)))
    if r.offset != len(data):
        raise DecodeError(f"{len(data) - r.offset} bytes after the end of the region program")
    program = ir.Program(name, values, steps, symbols, arena_bytes)
    try:
        check_program(program)
    except ProgramError as error:
        raise DecodeError(str(error)) from None
    return program


_U32, _I64, _F64 = struct.Struct("<I"), struct.Struct("<q"), struct.Struct("<d")
_NUMBER, _PAIR, _TRIPLE = struct.Struct("<Bq"), struct.Struct("<qq"), struct.Struct("<qqq")


@lru_cache(maxsize=4096)
def _text(text: str) -> bytes:
    data = text.encode()
    return _U32.pack(len(data)) + data


@cache
def _names(attributes: type[ir.Attributes]) -> tuple[str, ...]:
    """Names of a kind's attributes, in the order of their bytes."""
    return tuple(field.name for field in fields(attributes))


class _Writer:
    def __init__(self, symbols: dict[str, int]) -> None:
        self.buffer = bytearray()
        self.symbols = symbols

    def raw(self, data: bytes) -> None:
        self.buffer += data

    def u8(self, number: int) -> None:
        self.buffer.append(number)

    def u32(self, number: int) -> None:
        self.buffer += _U32.pack(number)

    def i64(self, number: int) -> None:
        self.buffer += _I64.pack(number)

    def f64(self, number: float) -> None:
        self.buffer += _F64.pack(number)

    def string(self, text: str) -> None:
        self.buffer += _text(text)

    def dim(self, dim: Dim) -> None:
        if isinstance(dim, int):
            self.buffer += _NUMBER.pack(0, dim)
        elif isinstance(dim, Symbol):
            self.u8(1)
            self.u32(self.symbols[dim.name])
        else:
            self.u8(2 + OPERATORS.index(dim.operator))
            self.dim(dim.left)
            self.dim(dim.right)

    def value(self, value: ir.Value) -> None:
        self.string(value.name)
        self.string(value.dtype)
        self.u8(ir.VALUE_KINDS.index(value.kind))
        self.string(value.layout)
        self.buffer += _TRIPLE.pack(value.index, value.state, value.alias_of)
        self.dim(value.alias_offset)
        self.buffer += _PAIR.pack(value.offset, value.nbytes)
        self.u32(len(value.shape))
        for dim in value.shape:
            self.dim(dim)

    def step(self, step: ir.Step) -> None:
        self.string(step.kind)
        self.string(step.name)
        self.string(step.library)
        self.string(step.implementation)
        self.buffer += _PAIR.pack(step.scratchpad_offset, step.scratchpad_bytes)
        self.u32(len(step.refused))
        for refused in step.refused:
            self.string(refused)
        self.u32(len(step.prepared))
        self.raw(step.prepared)
        names = _names(type(step.attrs))  # type: ignore[arg-type]
        self.u32(len(names))
        for name in names:
            self.string(name)
            self.attribute(getattr(step.attrs, name))
        self.u32(len(step.operands))
        for operand in step.operands:
            self.string(operand.role)
            self.i64(operand.value)
        self.u32(len(step.post_ops))
        for post_op in step.post_ops:
            self.post_op(post_op)

    def attribute(self, value: object) -> None:
        if isinstance(value, bool):
            self.u8(4)
            self.u8(value)
        elif isinstance(value, int):
            self.u8(0)
            self.i64(value)
        elif isinstance(value, float):
            self.u8(1)
            self.f64(value)
        elif isinstance(value, str):
            self.u8(2)
            self.string(value)
        elif isinstance(value, tuple):
            self.u8(3)
            self.u32(len(value))
            for number in value:
                self.i64(number)
        else:
            raise TypeError(f"a step's attribute cannot be {value!r}")

    def post_op(self, post_op: ir.PostOp) -> None:
        if isinstance(post_op, ir.EltwisePostOp):
            self.u8(0)
            self.string(post_op.algorithm)
            self.f64(post_op.alpha)
            self.f64(post_op.beta)
        elif isinstance(post_op, ir.BinaryPostOp):
            self.u8(1)
            self.string(post_op.algorithm)
            self.i64(post_op.value)
        elif isinstance(post_op, ir.SumPostOp):
            self.u8(2)
            self.f64(post_op.scale)
        else:
            self.u8(3)
            self.i64(post_op.kernel)
            self.i64(post_op.stride)
            self.i64(post_op.padding)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0
        self.symbols: list[str] = []

    def pass_over(self, size: int) -> int:
        """Returns the place of the next ``size`` bytes, and goes on behind them."""
        begin, self.offset = self.offset, self.offset + size
        if self.offset > len(self.data):
            raise DecodeError(f"region program ends at byte {len(self.data)}, {self.offset} were expected")
        return begin

    def take(self, size: int) -> bytes:
        begin = self.pass_over(size)
        return self.data[begin : self.offset]

    def u8(self) -> int:
        return self.data[self.pass_over(1)]

    def u32(self) -> int:
        return int(_U32.unpack_from(self.data, self.pass_over(4))[0])

    def i64(self) -> int:
        return int(_I64.unpack_from(self.data, self.pass_over(8))[0])

    def f64(self) -> float:
        return float(_F64.unpack_from(self.data, self.pass_over(8))[0])

    def count(self, smallest: int) -> int:
        """A count of items of at least ``smallest`` bytes each, so that garbage cannot ask for memory."""
        count = self.u32()
        if count * smallest > len(self.data) - self.offset:
            raise DecodeError(f"count {count} at byte {self.offset - 4} is more than the data can hold")
        return count

    def string(self) -> str:
        try:
            return self.take(self.u32()).decode()
        except UnicodeDecodeError as error:
            raise DecodeError(f"bad text before byte {self.offset}: {error}") from None

    def code(self, end: int) -> int:
        number = self.u8()
        if number >= end:
            raise DecodeError(f"code {number} at byte {self.offset - 1} is not below {end}")
        return number

    def dim(self, depth: int = 0) -> Dim:
        if depth > _MAX_EXPRESSION_DEPTH:
            raise DecodeError("a dimension's expression is nested too deeply")
        code = self.u8()
        if code == 0:
            return self.i64()
        if code == 1:
            index = self.u32()
            if index >= len(self.symbols):
                raise DecodeError(f"symbol {index} of {len(self.symbols)}")
            return Symbol(self.symbols[index])
        if code - 2 >= len(OPERATORS):
            raise DecodeError(f"code {code} at byte {self.offset - 1} is no dimension")
        return Expr(OPERATORS[code - 2], self.dim(depth + 1), self.dim(depth + 1))

    def value(self) -> ir.Value:
        name, dtype = self.string(), self.string()
        kind: ir.ValueKind = ir.VALUE_KINDS[self.code(len(ir.VALUE_KINDS))]
        layout, index, state, alias_of = self.string(), self.i64(), self.i64(), self.i64()
        alias_offset, offset, nbytes = self.dim(), self.i64(), self.i64()
        shape = tuple(self.dim() for _ in range(self.count(5)))
        head = (name, shape, dtype, kind, layout)
        return ir.Value(*head, index, alias_of, alias_offset, offset, nbytes, state)

    def step(self) -> ir.Step:
        kind, name, library, implementation = (self.string() for _ in range(4))
        scratchpad_offset, scratchpad_bytes = self.i64(), self.i64()
        refused = tuple(self.string() for _ in range(self.count(4)))
        prepared = self.take(self.u32())
        attributes = {self.string(): self.attribute() for _ in range(self.count(6))}
        operands = tuple(ir.Operand(self.string(), self.i64()) for _ in range(self.count(12)))
        post_ops = tuple(self.post_op() for _ in range(self.count(9)))
        if kind not in ir.STEP_KINDS:
            raise DecodeError(f"unknown step kind {kind!r}")
        try:
            attrs = ir.STEP_KINDS[kind](**attributes)
        except TypeError as error:
            raise DecodeError(f"step {name!r} of kind {kind}: {error}") from None
        rest = (implementation, scratchpad_offset, scratchpad_bytes, refused, prepared, library)
        return ir.Step(name, attrs, operands, post_ops, *rest)

    def attribute(self) -> object:
        code = self.u8()
        if code == 0:
            return self.i64()
        if code == 1:
            return self.f64()
        if code == 2:
            return self.string()
        if code == 3:
            return tuple(self.i64() for _ in range(self.count(8)))
        if code == 4:
            return bool(self.u8())
        raise DecodeError(f"attribute type {code} at byte {self.offset - 1}")

    def post_op(self) -> ir.PostOp:
        code = self.u8()
        if code == 0:
            return ir.EltwisePostOp(self.string(), self.f64(), self.f64())
        if code == 1:
            return ir.BinaryPostOp(self.string(), self.i64())
        if code == 2:
            return ir.SumPostOp(self.f64())
        if code == 3:
            return ir.DepthwisePostOp(self.i64(), self.i64(), self.i64())
        raise DecodeError(f"post-op type {code} at byte {self.offset - 1}")
