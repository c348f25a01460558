"""Networks of the zoo that `onnx` does not ship, after the papers that define them.

- ResNet-18 and ResNet-152: He et al., "Deep Residual Learning", arXiv 1512.03385; the stride of a bottleneck
  stands in its 3x3 convolution, as in most published weights.
- MobileNet-V2: Sandler et al., arXiv 1801.04381, table 2.
- Inception-V3: Szegedy et al., "Rethinking the Inception Architecture", arXiv 1512.00567, without the
  auxiliary classifier.
- Inception-V4: Szegedy et al., arXiv 1602.07261, figures 3 to 9.
- tiny: ours, a network of odd shapes that compiles and runs in no time, for tests of tools.
"""

from __future__ import annotations

from collections.abc import Callable

from .graph_builder import VALID, GraphBuilder
from .skeleton import Skeleton

CLASSES = 1000


def resnet18() -> Skeleton:
    return _resnet("resnet18", _basic_block, repeats=(2, 2, 2, 2))


def resnet152() -> Skeleton:
    return _resnet("resnet152", _bottleneck, repeats=(3, 8, 36, 3))


def _resnet(name: str, block: Callable[..., str], repeats: tuple[int, ...]) -> Skeleton:
    g = GraphBuilder(name, (3, 224, 224))
    x = g.conv_bn_relu(g.input, 64, 7, stride=2)
    x = g.max_pool(x, 3, 2)
    for stage, count in enumerate(repeats):
        for index in range(count):
            x = block(g, x, 64 << stage, stride=2 if stage > 0 and index == 0 else 1)
    return g.finish(g.classifier(x, CLASSES))


def _basic_block(g: GraphBuilder, x: str, width: int, stride: int) -> str:
    y = g.conv_bn_relu(x, width, 3, stride)
    y = g.conv_bn(y, width, 3)
    return g.relu(g.add(y, _shortcut(g, x, width, stride)))


def _bottleneck(g: GraphBuilder, x: str, width: int, stride: int) -> str:
    y = g.conv_bn_relu(x, width, 1)
    y = g.conv_bn_relu(y, width, 3, stride)
    y = g.conv_bn(y, 4 * width, 1)
    return g.relu(g.add(y, _shortcut(g, x, 4 * width, stride)))


def _shortcut(g: GraphBuilder, x: str, channels: int, stride: int) -> str:
    if stride == 1 and g.shape(x)[0] == channels:
        return x
    return g.conv_bn(x, channels, 1, stride)


def mobilenet_v2() -> Skeleton:
    g = GraphBuilder("mobilenet_v2", (3, 224, 224))
    x = g.relu6(g.conv_bn(g.input, 32, 3, stride=2))
    for expansion, channels, count, first_stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for index in range(count):
            x = _inverted_residual(g, x, expansion, channels, first_stride if index == 0 else 1)
    x = g.relu6(g.conv_bn(x, 1280, 1))
    return g.finish(g.classifier(x, CLASSES))


def _inverted_residual(g: GraphBuilder, x: str, expansion: int, channels: int, stride: int) -> str:
    hidden = g.shape(x)[0] * expansion
    y = x if expansion == 1 else g.relu6(g.conv_bn(x, hidden, 1))
    y = g.relu6(g.conv_bn(y, hidden, 3, stride, groups=hidden))
    y = g.conv_bn(y, channels, 1)
    return g.add(x, y) if stride == 1 and g.shape(x)[0] == channels else y


def inception_v3() -> Skeleton:
    g = GraphBuilder("inception_v3", (3, 299, 299), bn_epsilon=1e-3)
    conv = g.conv_bn_relu
    x = conv(g.input, 32, 3, stride=2, pad=VALID)
    x = conv(x, 32, 3, pad=VALID)
    x = conv(x, 64, 3)
    x = g.max_pool(x, 3, 2, pad=VALID)
    x = conv(x, 80, 1)
    x = conv(x, 192, 3, pad=VALID)
    x = g.max_pool(x, 3, 2, pad=VALID)
    for pool_channels in (32, 64, 64):
        x = g.concat(
            conv(x, 64, 1),
            _chain(g, x, (48, 1), (64, 5)),
            _chain(g, x, (64, 1), (96, 3), (96, 3)),
            conv(g.average_pool(x, 3, 1), pool_channels, 1),
        )
    x = g.concat(
        conv(x, 384, 3, stride=2, pad=VALID),
        conv(_chain(g, x, (64, 1), (96, 3)), 96, 3, stride=2, pad=VALID),
        g.max_pool(x, 3, 2, pad=VALID),
    )
    for width in (128, 160, 160, 192):
        x = g.concat(
            conv(x, 192, 1),
            _chain(g, x, (width, 1), (width, (1, 7)), (192, (7, 1))),
            _chain(g, x, (width, 1), (width, (7, 1)), (width, (1, 7)), (width, (7, 1)), (192, (1, 7))),
            conv(g.average_pool(x, 3, 1), 192, 1),
        )
    x = g.concat(
        conv(conv(x, 192, 1), 320, 3, stride=2, pad=VALID),
        conv(_chain(g, x, (192, 1), (192, (1, 7)), (192, (7, 1))), 192, 3, stride=2, pad=VALID),
        g.max_pool(x, 3, 2, pad=VALID),
    )
    for _ in range(2):
        middle = conv(x, 384, 1)
        deep = _chain(g, x, (448, 1), (384, 3))
        x = g.concat(
            conv(x, 320, 1),
            conv(middle, 384, (1, 3)),
            conv(middle, 384, (3, 1)),
            conv(deep, 384, (1, 3)),
            conv(deep, 384, (3, 1)),
            conv(g.average_pool(x, 3, 1), 192, 1),
        )
    return g.finish(g.classifier(x, CLASSES))


def inception_v4() -> Skeleton:
    g = GraphBuilder("inception_v4", (3, 299, 299), bn_epsilon=1e-3)
    conv = g.conv_bn_relu
    x = conv(g.input, 32, 3, stride=2, pad=VALID)
    x = conv(x, 32, 3, pad=VALID)
    x = conv(x, 64, 3)
    x = g.concat(g.max_pool(x, 3, 2, pad=VALID), conv(x, 96, 3, stride=2, pad=VALID))
    x = g.concat(
        conv(conv(x, 64, 1), 96, 3, pad=VALID),
        conv(_chain(g, x, (64, 1), (64, (1, 7)), (64, (7, 1))), 96, 3, pad=VALID),
    )
    x = g.concat(conv(x, 192, 3, stride=2, pad=VALID), g.max_pool(x, 3, 2, pad=VALID))
    for _ in range(4):
        x = g.concat(
            conv(g.average_pool(x, 3, 1), 96, 1),
            conv(x, 96, 1),
            _chain(g, x, (64, 1), (96, 3)),
            _chain(g, x, (64, 1), (96, 3), (96, 3)),
        )
    x = g.concat(
        g.max_pool(x, 3, 2, pad=VALID),
        conv(x, 384, 3, stride=2, pad=VALID),
        conv(_chain(g, x, (192, 1), (224, 3)), 256, 3, stride=2, pad=VALID),
    )
    for _ in range(7):
        x = g.concat(
            conv(g.average_pool(x, 3, 1), 128, 1),
            conv(x, 384, 1),
            _chain(g, x, (192, 1), (224, (1, 7)), (256, (7, 1))),
            _chain(g, x, (192, 1), (192, (1, 7)), (224, (7, 1)), (224, (1, 7)), (256, (7, 1))),
        )
    x = g.concat(
        g.max_pool(x, 3, 2, pad=VALID),
        conv(conv(x, 192, 1), 192, 3, stride=2, pad=VALID),
        conv(_chain(g, x, (256, 1), (256, (1, 7)), (320, (7, 1))), 320, 3, stride=2, pad=VALID),
    )
    for _ in range(3):
        middle = conv(x, 384, 1)
        deep = _chain(g, x, (384, 1), (448, (1, 3)), (512, (3, 1)))
        x = g.concat(
            conv(g.average_pool(x, 3, 1), 256, 1),
            conv(x, 256, 1),
            conv(middle, 256, (1, 3)),
            conv(middle, 256, (3, 1)),
            conv(deep, 256, (3, 1)),
            conv(deep, 256, (1, 3)),
        )
    return g.finish(g.classifier(x, CLASSES))


def _chain(g: GraphBuilder, x: str, *layers: tuple[int, int | tuple[int, int]]) -> str:
    for channels, kernel in layers:
        x = g.conv_bn_relu(x, channels, kernel)
    return x


def tiny() -> Skeleton:
    g = GraphBuilder("tiny", (3, 32, 32))
    x = g.conv_bn_relu(g.input, 17, 3, stride=2)
    x = g.add(x, g.conv_bn(x, 17, 3))
    x = g.relu(x)
    x = g.concat(g.conv_bn_relu(x, 19, 1), g.max_pool(x, 3, 1))
    x = g.relu6(g.conv_bn(x, 36, 3, stride=2, groups=36))
    return g.finish(g.classifier(g.conv_bn_relu(x, 67, 1), 10))
