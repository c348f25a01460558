"""Products, and steps that move numbers, on the integers that a quantised model has around them.

Before   v1 = quantization(x);  v2 = quantization(v1) real;  v3 = convolution(v2, w real)
After    v1 = quantization(x);  v3 = convolution(v1, w int8; scales) real

A conversion of integers into real numbers is put off until some step reads real numbers: products take the
integers and scales as operands, and what only moves or compares numbers does that with integers as well:

    integers -> real -> max pooling, slice, shuffle, view -> ...      the same on integers
    integers -> real -> concat -> integers                            pieces in the result's scale
    integers -> real -> integers of the same scale                    nothing, or a copy in another layout
    real -> view -> integers                                          integers, and the view of them

What else reads them gets real numbers, converted once; constants are converted here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.program import program as ir

from ..graph import Graph
from .forms import Form, Numbers, numbers_of, real_numbers, view_of, weights_form

INTEGERS = ("uint8", "int8")
_MOVING = (ir.Slice, ir.Shuffle, ir.Reorder, ir.Concat)
Takes = Callable[[ir.Step], bool]
"""Whether a library runs a step on integers; values of the step are the graph's."""


def lower(graph: Graph, products: Takes, moves: Takes = lambda _: True) -> None:
    """Rewrite a graph in plain layouts; see the module's text.

    Parameters
    ----------
    products : which products compute with integers, the others with the real numbers that they stand for.
    moves : which of the steps that move or compare numbers do so with integers.
    """
    if any(step and isinstance(step.attrs, ir.Quantization) for step in graph.steps):
        _Lowering(graph, products, moves).run()


class _Lowering:
    def __init__(self, graph: Graph, products: Takes, moves: Takes) -> None:
        self.graph = graph
        self.products = products
        self.moves = moves
        self.old = [step for step in graph.steps if step]
        self.steps: list[ir.Step] = []
        self.forms: dict[int, Form] = {}
        self.views: dict[int, Form | None] = {}
        self.same: dict[int, int] = {}  # values that others hold the integers of
        self.real: set[int] = set()  # values with a form that stand as real numbers, too
        self.readers: dict[int, list[ir.Step]] = {}
        for step in self.old:
            for value in step.reads():
                self.readers.setdefault(value, []).append(step)
        self.views_of = Counter(value.alias_of for value in graph.values)

    def run(self) -> None:
        for step in self.old:
            if isinstance(step.attrs, ir.Quantization):
                self._conversion(step)
            elif isinstance(step.attrs, ir.PRODUCTS) and self._product(step):
                continue
            elif (isinstance(step.attrs, _MOVING) or _is_maximum(step)) and self.moves(step):
                self._moving(step)
            else:
                self._other(step)
        self.graph.rebuild(self.steps, self.same)

    # --- steps ----------------------------------------------------------------------------------------------

    def _conversion(self, step: ir.Step) -> None:
        src, dst = step.operand("src"), step.dst
        values = self.graph.values
        if values[dst].dtype not in INTEGERS:
            self._formed(dst, Form(self._holder(src), numbers_of(self.graph, step, "src")))
            return
        form, wanted = self._form(src), numbers_of(self.graph, step, "dst")
        if form is None and wanted.is_single and self._in_front_of_views(step):
            return
        if form is None or not (form.numbers.is_single and wanted.is_single):
            self._other(step)
        elif not self._holds(form, values[dst].dtype, wanted):
            self._requantised(step.name, form, dst, wanted)
        elif self._is_free(dst) and self._fits(dst, form.value):
            self.same[dst] = form.value
        elif not self._copied(step.name, form.value, dst):
            self._other(step)

    def _in_front_of_views(self, step: ir.Step) -> bool:
        """Convert what ``step`` reads a view of, and view the integers; False where others see it, too."""
        seen, dst = step.operand("src"), step.dst
        values = self.graph.values
        if (
            values[seen].alias_of < 0
            or seen in self.views_of
            or dst in self.views_of
            or not self._is_free(dst)
        ):
            return False
        base, readers = seen, list(self.readers.get(seen, ()))
        while values[base].alias_of >= 0 and values[base].alias_offset == 0:
            base = values[base].alias_of
            readers += self.readers.get(base, ())
            if self.views_of[base] > 1:
                return False
        if readers != [step] or not self._is_free(base) or base in self.forms:
            return False
        fits = self._fits(dst, seen)
        if not fits and not self.moves(_copy(step.name, seen, dst)):
            return False
        whole = self.graph.add_local(values[dst].name, values[base].shape, values[dst].dtype)
        replaced = {"src": base, "dst": whole}
        operands = tuple(replace(one, value=replaced.get(one.role, one.value)) for one in step.operands)
        self.steps.append(replace(step, operands=operands))
        view = self.graph.add(replace(values[seen], dtype=values[dst].dtype, alias_of=whole))
        if fits:
            self.same[dst] = view
        else:
            self.steps.append(_copy(f"{step.name}.copy", view, dst))
        return True

    def _requantised(self, name: str, form: Form, dst: int, wanted: Numbers) -> None:
        sides = (*form.numbers.operands("src"), *wanted.operands("dst"))
        operands = (ir.Operand("src", form.value), *sides, ir.Operand("dst", dst))
        self.steps.append(ir.Step(name, ir.Quantization(0), operands))

    def _copied(self, name: str, src: int, dst: int) -> bool:
        """Write integers once more, in the layout of ``dst``; False, and nothing done, where that is to be
        done with real numbers."""
        copy = _copy(name, src, dst)
        if not self.moves(copy):
            return False
        self.steps.append(copy)
        return True

    def _fits(self, value: int, held: int) -> bool:
        """True if integers in the layout of ``held`` may stand for ``value`` and its real numbers.

        Views show these in their own layout.
        """
        alike = self.graph.values[value].layout == self.graph.values[held].layout
        read = (one for one in self.readers.get(value, ()) if isinstance(one.attrs, ir.Quantization))
        return alike or not any(one in self.views_of for one in (value, *(step.dst for step in read)))

    def _holds(self, form: Form, dtype: str, wanted: Numbers) -> bool:
        return self.graph.values[form.value].dtype == dtype and form.numbers.same_as(wanted)

    def _product(self, step: ir.Step) -> bool:
        """The product on integers; False, and nothing done, where it has to be one of real numbers."""
        src, weights = self._form(step.operand("src")), self._weights(step)
        if src is None or weights is None or not src.numbers.is_single:
            return False
        scale = self.graph.add_constant(weights.scale, f"{step.name}.weights_scale")
        roles = {operand.role: operand.value for operand in step.operands}
        roles |= {"src": src.value, "weights": weights.value}
        operands = [ir.Operand(role, value) for role, value in roles.items() if role != "dst"]
        operands += [*src.numbers.operands("src"), ir.Operand("weights_scale", scale)]
        operands.append(ir.Operand("dst", step.dst))
        made = replace(step, operands=tuple(operands))
        if not self.products(made):
            return False
        self.steps.append(made)
        return True

    def _weights(self, step: ir.Step):  # type: ignore[no-untyped-def]
        weights = step.operand("weights")
        real = weights
        while real not in self.forms and self.graph.values[real].alias_of >= 0:
            real = self.graph.values[real].alias_of
        if real not in self.forms:
            return None
        rank = len(self.graph.values[weights].shape)
        if isinstance(step.attrs, ir.MatMul):
            outputs: tuple[int, ...] = (rank - 1,)
        elif isinstance(step.attrs, ir.InnerProduct):
            outputs = (0,)
        else:
            outputs = (0,) if step.attrs.groups == 1 else (0, 1)  # type: ignore[union-attr]
        return weights_form(self.graph, self.forms[real], real, weights, outputs)

    def _moving(self, step: ir.Step) -> None:
        if isinstance(step.attrs, ir.Concat):
            if not self._concat(step):
                self._other(step)
            return
        form = self._form(step.operand("src"))
        value = self.graph.values[step.dst]
        plain = value.layout == plain_layout(len(value.shape)) and not step.post_ops
        if not (form and form.numbers.is_single and plain) or self.graph.constant(form.value) is not None:
            self._other(step)
            return
        dst = self.graph.add_local(value.name, value.shape, self.graph.values[form.value].dtype)
        self.steps.append(replace(step, operands=(ir.Operand("src", form.value), ir.Operand("dst", dst))))
        self._formed(step.dst, Form(dst, form.numbers))

    def _concat(self, step: ir.Step) -> bool:
        """Pieces as integers of one scale: their own, or that of who reads the result as integers."""
        pieces = [operand.value for operand in step.operands if operand.role == "src"]
        forms = [self._form(piece) for piece in pieces]
        first, value = forms[0], self.graph.values[step.dst]
        readers = self.readers.get(step.dst, [])
        if value.layout != plain_layout(len(value.shape)) or step.post_ops:
            return False
        wanted = first.numbers if first else None
        dtype = self.graph.values[first.value].dtype if first else ""
        if not all(form and wanted and self._holds(form, dtype, wanted) for form in forms):
            if not readers or step.dst in self.views_of or not all(map(_makes_integers, readers)):
                return False
            found = [numbers_of(self.graph, reader, "dst") for reader in readers]
            wanted, dtype = found[0], self.graph.values[readers[0].dst].dtype
            types = {self.graph.values[reader.dst].dtype for reader in readers}
            if len(types) > 1 or not all(one.same_as(wanted) and one.is_single for one in found):
                return False
        assert wanted is not None
        operands = []
        for number, (piece, form) in enumerate(zip(pieces, forms, strict=True)):
            operands.append(
                ir.Operand("src", self._piece(f"{step.name}.{number}", piece, form, wanted, dtype))
            )
        dst = self.graph.add_local(value.name, value.shape, dtype)
        self.steps.append(replace(step, operands=(*operands, ir.Operand("dst", dst))))
        self._formed(step.dst, Form(dst, wanted))
        return True

    def _piece(self, name: str, piece: int, form: Form | None, wanted: Numbers, dtype: str) -> int:
        if form and self._holds(form, dtype, wanted):
            return form.value
        value = self.graph.add_local(name, self.graph.values[piece].shape, dtype)
        if form and form.numbers.is_single:
            self._requantised(name, form, value, wanted)
        else:
            self._make_real(piece)
            operands = (ir.Operand("src", piece), *wanted.operands("dst"), ir.Operand("dst", value))
            self.steps.append(ir.Step(name, ir.Quantization(0), operands))
        return value

    def _other(self, step: ir.Step) -> None:
        for value in step.reads():
            self._make_real(value)
        self.steps.append(step)

    # --- forms ----------------------------------------------------------------------------------------------

    def _formed(self, real: int, form: Form) -> None:
        self.forms[real] = form
        if self.graph.values[self.graph.root(real)].kind == "output":
            self._make_real(real)

    def _holder(self, value: int) -> int:
        """The value that holds the integers of ``value``, in a layout of its own."""
        while value in self.same:
            value = self.same[value]
        return value

    def _form(self, value: int) -> Form | None:
        """The integers that a real value, or what it is a view of, stands in; None if in none."""
        if value in self.forms:
            return self.forms[value]
        base = self.graph.values[value].alias_of
        if base < 0:
            return None
        if value not in self.views:
            form = self._form(base)
            self.views[value] = None if form is None else view_of(self.graph, form, base, value)
        return self.views[value]

    def _make_real(self, value: int) -> None:
        """Write a value as real numbers, unless it stands so."""
        while value not in self.forms and self.graph.values[value].alias_of >= 0:
            value = self.graph.values[value].alias_of
        if value not in self.forms or value in self.real:
            return
        self.real.add(value)
        form = self.forms[value]
        array = real_numbers(self.graph, form)
        if array is not None and self._is_free(value):
            self.graph.become_constant(value, array)
            return
        operands = (
            ir.Operand("src", form.value), *form.numbers.operands("src"), ir.Operand("dst", value),
        )  # fmt: skip
        name = f"{self.graph.values[value].name}.real"
        self.steps.append(ir.Step(name, ir.Quantization(form.numbers.axis), operands))

    def _is_free(self, value: int) -> bool:
        return self.graph.values[value].kind == "local" and self.graph.values[value].alias_of < 0


def _copy(name: str, src: int, dst: int) -> ir.Step:
    return ir.Step(name, ir.Reorder(), (ir.Operand("src", src), ir.Operand("dst", dst)))


def _is_maximum(step: ir.Step) -> bool:
    return isinstance(step.attrs, ir.Pooling) and step.attrs.algorithm == "max"


def _makes_integers(step: ir.Step) -> bool:
    roles = {operand.role for operand in step.operands}
    return isinstance(step.attrs, ir.Quantization) and "dst_scale" in roles and "src_scale" not in roles
