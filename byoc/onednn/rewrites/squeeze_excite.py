"""Squeeze-and-excite as one step, however its products are written.

Before   m = mean of pixels(x);  h = product(m) [function];  g = product(h) [gate];  y = x * g
After    y = squeeze_excite(x)

Products are convolutions of one pixel, or matrix products between reshapes; with one of them alone its result
is the gate.  Separate steps would wake all threads five times, for little work in the middle three.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tvm_mxplan.byoc.rewrites.graph import Graph
from tvm_mxplan.core.layout.layout import parse_layout, plain_layout
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Dim, Shape, is_static

FUNCTIONS = frozenset(
    ("relu", "clip", "clip_v2", "linear", "logistic", "swish", "tanh", "hardsigmoid", "hardswish", "elu")
)
"""Functions that kernels of our own apply, alone (``byoc/runtime/onednn/post_ops``)."""
_NONE = ("linear", 1.0, 0.0)


@dataclass(frozen=True)
class _Product:
    """A product of one row for each sample: its weights [outputs, inputs], bias and function."""

    weights: int
    bias: int | None
    function: tuple[str, float, float]
    src: int


@dataclass
class _Found:
    """Products before the multiplication, and positions of all steps from its gate to the means."""

    products: list[_Product] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)


def squeeze_and_excite(graph: Graph) -> None:
    """Make one step of every image that is multiplied by gates made of its own means."""
    for at, step in enumerate(list(graph.steps)):
        if not step or not isinstance(step.attrs, ir.Binary) or step.attrs.algorithm != "mul":
            continue
        src = step.operand("src")
        found = _match(graph, at, src, step.operand("src1")) if _fits(graph, step, src) else None
        if found is not None:
            _rewrite(graph, at, step, src, found)


def _fits(graph: Graph, step: ir.Step, src: int) -> bool:
    """Whether a step could write what it multiplies ``src`` to, and do what follows."""
    image, dst = graph.values[src], graph.values[step.dst]
    known = len(image.shape) > 2 and is_static(image.shape[1:])
    return known and dst.shape == image.shape and all(_takes(graph, one, dst) for one in step.post_ops)


def _takes(graph: Graph, post_op: ir.PostOp, dst: ir.Value) -> bool:
    if isinstance(post_op, ir.EltwisePostOp):
        return post_op.algorithm in FUNCTIONS
    return isinstance(post_op, ir.BinaryPostOp) and graph.values[post_op.value].shape == dst.shape


def _match(graph: Graph, at: int, src: int, gate: int) -> _Found | None:
    """The steps between the image and its gates; None if there are others, or anyone else reads of them."""
    samples, channels = graph.values[src].shape[:2]
    found, value = _Found(), gate
    wanted: Dim = channels
    while len(found.products) < 2:
        product = _product(graph, found, value, (samples, wanted))
        if product is None:
            break
        found.products.insert(0, product)
        wanted, value = graph.values[product.weights].shape[1], product.src
    if not found.products or wanted != channels:
        return None
    return found if _is_mean(graph, found, value, src) and _is_before(graph, found, at) else None


def _is_before(graph: Graph, found: _Found, at: int) -> bool:
    return all(position < at < len(graph.program.steps) for position in found.steps)


def _writer(graph: Graph, value: int, flat: Shape) -> int | None:
    """The position of the step whose result ``value`` shows, read in order by one step alone."""
    if _extents(graph.values[value].shape) != _extents(flat) or graph.reads(value) != 1:
        return None
    chain = graph.chain(value)
    for of, seen in zip((None, *chain), chain, strict=False):
        told = graph.values[seen]
        views = [] if of is None else [of]
        read = graph.reads(seen) != (1 if of is None else 0)
        if told.kind != "local" or read or graph.views(seen) != views or not _in_order(told):
            return None
    return graph.writer(chain[-1])


def _extents(shape: Shape) -> list[Dim]:
    return [extent for extent in shape if extent != 1]


def _in_order(value: ir.Value) -> bool:
    """Whether elements stand in the order of their indices, without gaps."""
    layout = parse_layout(value.layout)
    order = [axis for axis in layout.order if value.shape[axis] != 1]
    return not layout.blocks and value.alias_offset == 0 and order == sorted(order)


def _product(graph: Graph, found: _Found, value: int, shape: Shape) -> _Product | None:
    """The product that ``value`` [samples, outputs] is the result of, behind a function at most."""
    at = _writer(graph, value, shape)
    step = None if at is None else graph.steps[at]
    if at is None or step is None:
        return None
    function = _NONE
    behind: list[int] = []
    if isinstance(step.attrs, ir.Eltwise) and step.attrs.algorithm in FUNCTIONS and not step.post_ops:
        function = (step.attrs.algorithm, step.attrs.alpha, step.attrs.beta)
        behind.append(at)
        at = _writer(graph, step.operand("src"), shape)
        step = None if at is None else graph.steps[at]
        if at is None or step is None:
            return None
    for post_op in step.post_ops:
        if not isinstance(post_op, ir.EltwisePostOp) or post_op.algorithm not in FUNCTIONS:
            return None
        if function != _NONE:
            return None
        function = (post_op.algorithm, post_op.alpha, post_op.beta)
    weights = None if step.is_quantized else _weights(graph, step, shape)
    bias = next((operand.value for operand in step.operands if operand.role == "bias"), None)
    if weights is None or (bias is not None and not _is_vector(graph, bias, shape[1])):
        return None
    found.steps += [*behind, at]
    bias = None if bias is None else _seen(graph, bias, (shape[1],), plain_layout(1))
    return _Product(weights, bias, function, step.operand("src"))


def _is_vector(graph: Graph, value: int, outputs: Dim) -> bool:
    told = graph.values[value]
    return _extents(told.shape) == _extents((outputs,)) and _in_order(told)


def _weights(graph: Graph, step: ir.Step, shape: Shape) -> int | None:
    """Constant weights of a product seen as [outputs, inputs]."""
    if not isinstance(step.attrs, ir.Convolution | ir.MatMul):
        return None
    number = step.operand("weights")
    told = graph.values[number]
    layout = parse_layout(told.layout)
    if graph.values[graph.root(number)].kind != "constant" or layout.blocks:
        return None
    if isinstance(step.attrs, ir.Convolution):
        attrs, image = step.attrs, graph.values[step.dst].shape[2:]
        pixel = all(extent == 1 for extent in (*told.shape[2:], *image))
        if attrs.groups != 1 or any(attrs.padding) or not pixel or step.has_depthwise:
            return None
        outputs, inputs = 0, 1
    else:
        inputs, outputs = len(told.shape) - 2, len(told.shape) - 1
        if any(extent != 1 for extent in told.shape[:-2]):
            return None
    src = graph.values[step.operand("src")]
    if _extents(src.shape) != _extents((shape[0], told.shape[inputs])):
        return None
    order = "ab" if layout.order.index(outputs) < layout.order.index(inputs) else "ba"
    return _seen(graph, number, (told.shape[outputs], told.shape[inputs]), order)


def _seen(graph: Graph, value: int, shape: Shape, layout: str) -> int:
    told = graph.values[value]
    if (told.shape, told.layout) == (shape, layout):
        return value
    return graph.add(told.inside(shape=shape, layout=layout, alias_of=value, alias_offset=0))


def _is_mean(graph: Graph, found: _Found, value: int, image: int) -> bool:
    """Whether ``value`` has the means over all pixels of ``image``, by pools in stages."""
    shape = graph.values[image].shape
    at = _writer(graph, value, shape[:2])
    for position, step in _pools(graph, at):
        found.steps.append(position)
        src = step.operand("src")
        if _shows(graph, src, image):
            return True
        if graph.reads(src) != 1 or graph.views(src):
            return False
    return False


def _pools(graph: Graph, at: int | None) -> Iterator[tuple[int, ir.Step]]:
    """Pools, the last one first, whose windows have each element of their source once."""
    while at is not None:
        step = graph.steps[at]
        if step is None or not isinstance(step.attrs, ir.Pooling) or step.post_ops:
            return
        attrs, src, dst = step.attrs, *(graph.values[step.operand(role)].shape for role in ("src", "dst"))
        pairs = zip(attrs.kernel, dst[2:], src[2:], strict=True)
        whole = all(isinstance(out, int) and kernel * out == extent for kernel, out, extent in pairs)
        steps = zip(attrs.strides, attrs.kernel, dst[2:], strict=True)
        apart = all(stride == kernel or out == 1 for stride, kernel, out in steps)
        dense = not any(attrs.padding) and all(one == 1 for one in attrs.dilation)
        if attrs.algorithm == "max" or not (whole and apart and dense):
            return
        yield at, step
        at = graph.writer(step.operand("src"))


def _shows(graph: Graph, value: int, image: int) -> bool:
    """Whether ``value`` has the elements of ``image``, channel by channel."""
    told, other = graph.values[value], graph.values[image]
    if value == image:
        return True
    same = graph.root(value) == graph.root(image) and told.shape[:2] == other.shape[:2]
    sizes = [_size(one.shape[2:]) for one in (told, other)]
    return same and _in_order(told) and _in_order(other) and sizes[0] == sizes[1]


def _size(shape: Shape) -> int | None:
    size = 1
    for extent in shape:
        if not isinstance(extent, int):
            return None
        size *= extent
    return size


def _rewrite(graph: Graph, at: int, step: ir.Step, src: int, found: _Found) -> None:
    first, second = found.products[0], found.products[1:]
    gate = second[0].function if second else first.function
    function = first.function if second else _NONE
    operands = [("src", src), ("weights", first.weights), ("bias", first.bias)]
    operands += [pair for one in second for pair in (("gate_weights", one.weights), ("gate_bias", one.bias))]
    named = [ir.Operand(role, value) for role, value in (*operands, ("dst", step.dst)) if value is not None]
    for position in found.steps:
        graph.drop_into(position, step.name)
    graph.replace(at, ir.Step(step.name, ir.SqueezeExcite(*function, *gate), tuple(named), step.post_ops))
