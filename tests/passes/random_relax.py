"""Random Relax functions as text: elementwise, reshapes, several results, tuples, casts, nested branches."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import tvm

Shape = tuple[int, ...]
_UNARY = ("tanh", "sigmoid", "negative", "abs")
_BINARY = ("add", "subtract", "multiply", "maximum")
_SHAPES: dict[int, list[Shape]] = {
    24: [(24,), (4, 6), (2, 3, 4), (6, 4)],
    48: [(48,), (8, 6), (4, 12)],
    12: [(12,), (2, 6), (4, 3)],
}


@dataclass(frozen=True)
class Value:
    """A tensor in scope."""

    name: str
    shape: Shape

    @property
    def count(self) -> int:
        product = 1
        for extent in self.shape:
            product *= extent
        return product


class RandomFunction:
    """The source of one module; ``branches`` says how deep `if` may nest."""

    def __init__(self, seed: int, length: int = 14, branches: int = 0) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.fresh = 0
        self.conditions = 0
        self.length = length
        self.branches = branches
        x = Value("x", (4, 6))
        scope = [x, Value("y", (4, 6))]
        self.statements(scope, length, 2, branches)
        results = [self.digest(scope), *self.rng.sample(scope, self.rng.choice([0, 1, 2]))]
        names = ", ".join(value.name for value in results)
        self.lines.append(f"        return {names}" if len(results) == 1 else f"        return ({names})")

    def digest(self, scope: list[Value]) -> Value:
        """A number that depends on every value that nothing else reads."""
        text = "\n".join(self.lines)
        unread = [value for value in scope[2:] if len(re.findall(rf"\b{value.name}\b", text)) == 1]
        total = ""
        for value in unread or scope[-1:]:
            part = self.name()
            self.emit(2, f"{part} = R.sum(R.tanh({value.name}))")
            if total:
                both = self.name()
                self.emit(2, f"{both} = R.add({total}, {part})")
                part = both
            total = part
        return Value(total, ())

    def source(self) -> str:
        conditions = "".join(f', c{i}: R.Tensor((), "bool")' for i in range(self.conditions))
        head = [
            "@I.ir_module",
            "class Module:",
            "    @R.function",
            f'    def main(x: R.Tensor((4, 6), "float32"), y: R.Tensor((4, 6), "float32"){conditions}):',
        ]
        return "\n".join(head + self.lines) + "\n"

    def module(self) -> tvm.IRModule:
        return tvm.script.from_source(self.source())

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statements(self, scope: list[Value], length: int, depth: int, branches: int) -> None:
        for _ in range(length):
            kinds = ["unary"] * 3 + ["binary"] * 4 + ["reshape"] * 2 + ["split", "tuple", "cast", "repeat"]
            kinds += ["softmax", "transpose"] + ["if"] * (3 if branches else 0)
            getattr(self, f"_{self.rng.choice(kinds)}")(scope, depth, branches)

    def pick(self, scope: list[Value]) -> Value:
        """One of the values, the newer ones more often."""
        return scope[max(self.rng.randrange(len(scope)) for _ in range(2))]

    def _unary(self, scope: list[Value], depth: int, _branches: int) -> None:
        value, name = self.pick(scope), self.name()
        self.emit(depth, f"{name} = R.{self.rng.choice(_UNARY)}({value.name})")
        scope.append(Value(name, value.shape))

    def _binary(self, scope: list[Value], depth: int, _branches: int) -> None:
        left, name = self.pick(scope), self.name()
        right = self.pick([value for value in scope if value.shape == left.shape])
        self.emit(depth, f"{name} = R.{self.rng.choice(_BINARY)}({left.name}, {right.name})")
        scope.append(Value(name, left.shape))

    def _softmax(self, scope: list[Value], depth: int, _branches: int) -> None:
        value, name = self.pick(scope), self.name()
        self.emit(depth, f"{name} = R.nn.softmax({value.name})")
        scope.append(Value(name, value.shape))

    def _transpose(self, scope: list[Value], depth: int, _branches: int) -> None:
        value, name = self.pick(scope), self.name()
        self.emit(depth, f"{name} = R.permute_dims({value.name})")
        scope.append(Value(name, value.shape[::-1]))

    def _reshape(self, scope: list[Value], depth: int, _branches: int) -> None:
        value, name = self.pick(scope), self.name()
        shape = self.rng.choice(_SHAPES[value.count])
        self.emit(depth, f"{name} = R.reshape({value.name}, R.shape({list(shape)}))")
        scope.append(Value(name, shape))

    def _cast(self, scope: list[Value], depth: int, _branches: int) -> None:
        value, name = self.pick(scope), self.name()
        self.emit(depth, f'{name} = R.match_cast({value.name}, R.Tensor({value.shape}, "float32"))')
        scope.append(Value(name, value.shape))

    def _repeat(self, scope: list[Value], depth: int, _branches: int) -> None:
        value, name = self.pick(scope), self.name()
        if value.count * 2 in _SHAPES:
            self.emit(depth, f"{name} = R.repeat({value.name}, 2, 0)")
            scope.append(Value(name, (value.shape[0] * 2, *value.shape[1:])))

    def _split(self, scope: list[Value], depth: int, _branches: int) -> None:
        value, name = self.pick(scope), self.name()
        if value.shape[0] % 2 or value.count // 2 not in _SHAPES:
            return
        self.emit(depth, f"{name} = R.split({value.name}, 2, axis=0)")
        half = (value.shape[0] // 2, *value.shape[1:])
        for index in self.rng.choice([(0,), (1,), (0, 1)]):
            part = self.name()
            self.emit(depth, f"{part} = {name}[{index}]")
            scope.append(Value(part, half))

    def _tuple(self, scope: list[Value], depth: int, _branches: int) -> None:
        a, b, name, part = self.pick(scope), self.pick(scope), self.name(), self.name()
        self.emit(depth, f"{name} = ({a.name}, {b.name})")
        self.emit(depth, f"{part} = {name}[1]")
        scope.append(Value(part, b.shape))

    def _if(self, scope: list[Value], depth: int, branches: int) -> None:
        if not branches:
            return
        condition, name = f"c{self.conditions}", self.name()
        self.conditions += 1
        pair = self.rng.random() < 0.3
        shapes: list[Shape] = []
        for keyword in (f"if {condition}:", "else:"):
            self.emit(depth, keyword)
            inner = list(scope)
            self.statements(inner, self.rng.randrange(1, 5), depth + 1, branches - 1)
            results = [self.of_shape(inner, shape, depth + 1) for shape in shapes]
            if not results:
                results = [self.pick(inner) for _ in range(2 if pair else 1)]
                shapes = [value.shape for value in results]
            names = ", ".join(value.name for value in results)
            self.emit(depth + 1, f"{name} = ({names})" if pair else f"{name} = {names}")
        for index, shape in enumerate(shapes):
            part = self.name() if pair else name
            if pair:
                self.emit(depth, f"{part} = {name}[{index}]")
            scope.append(Value(part, shape))

    def of_shape(self, scope: list[Value], shape: Shape, depth: int) -> Value:
        """A value of the wanted shape, made if there is none."""
        fitting = [value for value in scope if value.shape == shape]
        if fitting:
            return self.pick(fitting)
        name = self.name()
        self.emit(depth, f'{name} = R.full(R.shape({list(shape)}), R.const(0.5, "float32"), dtype="float32")')
        value = Value(name, shape)
        scope.append(value)
        return value
