"""Reads the parts of Relay's text: words taken one by one, types, and values of attributes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from .lexer import Word, words
from .metadata import Metadata
from .places import TextPlaces, invalid, quoted
from .syntax import Dim, OtherType, TensorType, TupleType, Type

DEEPEST = 100
"""Expressions, types and values of attributes inside of each other."""
_T = TypeVar("_T")


class Reader:
    """Takes words; says where one is wrong."""

    def __init__(
        self, text: str, span: tuple[int, int], places: TextPlaces, metadata: Metadata | None
    ) -> None:
        self._words = words(text, *span, places)
        self._places = places
        self._metadata = metadata
        self._depth = 0
        self._next = next(self._words)
        self._after: Word | None = None

    def _type(self) -> Type:
        return self._nested(self._one_type)

    def _one_type(self) -> Type:
        word = self._take()
        if word.text == "(":
            return TupleType(tuple(self._until(")", self._type)))
        if word.text == "fn":
            self._sign("(")
            self._until(")", self._type)
            self._expect("arrow", "->")
            self._type()
            return OtherType("a function")
        if word.text == "_":
            return None
        if word.kind != "name":
            invalid(self._places, word.place, f"expected a type, got {quoted(word.text)}")
        if word.text != "Tensor":
            if self._next.text == "[":
                self._take()
                self._until("]", self._type)
            return (
                TensorType((), word.text)
                if word.text[-1].isdecimal() or word.text == "bool"
                else OtherType(word.text)
            )
        self._sign("[")
        self._sign("(")
        shape = tuple(self._until(")", self._dim))
        self._sign(",")
        dtype = self._expect("name", "an element type").text
        self._sign("]")
        return TensorType(shape, dtype)

    def _dim(self) -> Dim:
        word = self._take()
        if word.text == "?":
            return None
        if word.kind == "number":
            extent = self._number(word)
            if extent.dtype.kind == "i" and extent >= 0:
                return int(extent)
        if word.kind == "meta":
            found = self._meta(word)
            if found is None or isinstance(found, int | str):
                return found
        return invalid(self._places, word.place, f"expected an extent of 0 or more, got {quoted(word.text)}")

    def _attribute(self, word: Word) -> tuple[str, Any]:
        if word.kind != "name":
            invalid(
                self._places, word.place, f"expected a parameter or an attribute, got {quoted(word.text)}"
            )
        self._sign("=")
        return word.text, self._value()

    def _value(self) -> Any:
        return self._nested(self._one_value)

    def _one_value(self) -> Any:
        word = self._take()
        if word.kind == "number":
            return self._number(word).item()
        if word.kind == "string":
            return word.text[1:-1]
        if word.kind == "meta":
            return self._meta(word)
        if word.text in ("[", "("):
            return self._until("]" if word.text == "[" else ")", self._value)
        if word.text == "?":
            return None
        constants = {"None": None, "True": True, "False": False}
        if word.text in constants:
            return constants[word.text]
        return invalid(self._places, word.place, f"expected an attribute's value, got {quoted(word.text)}")

    def _map(self) -> None:
        """``{name=value, ...}``, which says nothing that is needed."""
        self._sign("{")
        while self._next.text not in ("}", ""):
            self._take()
        self._sign("}")

    def _meta(self, word: Word) -> Any:
        kind, _, index = word.text.removeprefix("meta[").removesuffix("]").partition("][")
        if self._metadata is None and kind == "VirtualDevice":
            return None  # where a value lives, which is one place here
        if self._metadata is None:
            invalid(
                self._places,
                word.place,
                f"{quoted(word.text)} stands in the metadata, which this file leaves out; "
                "print it with astext(show_meta_data=True), or save it with tvm.ir.save_json",
            )
        return self._metadata.plain(
            kind, int(index), f"{self._places.named(word.place)}: {quoted(word.text)}"
        )

    def _number(self, word: Word) -> np.ndarray:
        """A literal of the type that its suffix says: f is float32, i64 int64, none int32."""
        digits = re.match(r"-?(?:inf|nan|[\d.]+(?:[eE][+-]?\d+)?)", word.text)
        suffix = word.text[digits.end() :] if digits else ""
        text = digits[0] if digits else word.text
        try:
            if suffix.startswith("f") or not text.lstrip("-").isdecimal():
                return np.asarray(float(text), f"float{suffix[1:] or 32}")
            number = int(text)
            width = suffix[1:] or (32 if -(2**31) <= number < 2**31 else 64)
            return np.asarray(number, f"int{width}")
        except (ValueError, TypeError, OverflowError):
            invalid(self._places, word.place, f"{quoted(word.text)} is no number of 16, 32 or 64 bits")

    def _until(self, closing: str, read: Callable[[], _T]) -> list[_T]:
        """A list behind its opening bracket, with commas between."""
        found: list[_T] = []
        while self._next.text != closing:
            found.append(read())
            if self._next.text != closing:
                self._sign(",")
        self._take()
        return found

    def _nested(self, read: Callable[[], _T]) -> _T:
        self._depth += 1
        if self._depth > DEEPEST:
            invalid(
                self._places,
                self._next.place,
                f"more than {DEEPEST} expressions stand inside of each other; bind them, as %0 = ...;",
            )
        found = read()
        self._depth -= 1
        return found

    def _is_name(self, text: str) -> bool:
        return self._next.kind == "name" and self._next.text == text

    def _second(self) -> Word:
        """The word behind the next one."""
        if self._after is None:
            self._after = self._next if self._next.kind == "end" else next(self._words)
        return self._after

    def _take(self) -> Word:
        word = self._next
        if word.kind != "end":
            self._next = self._second()
            self._after = None
        return word

    def _sign(self, text: str) -> None:
        if self._next.kind != "sign" or self._next.text != text:
            self._wrong(text)
        self._take()

    def _expect(self, kind: str, what: str) -> Word:
        if self._next.kind != kind:
            self._wrong(what)
        return self._take()

    def _wrong(self, expected: str) -> NoReturn:
        got = quoted(self._next.text) if self._next.kind != "end" else "the end of the text"
        invalid(self._places, self._next.place, f"expected {expected}, got {got}")
