"""Training: a model, a loss and an optimiser as one compiled step.

    from tvm_mxplan import training

    step = training.compile("model.onnx", "softmax_cross_entropy", training.SGD(0.1, momentum=0.9))
    for x, labels in batches:
        loss = step(x, labels)
    step.save("trained.onnx")

The modules, in the order in which they work:

    model.py, onnx_model.py                   a model with its weights as parameters
    forward.py                                batch norms and dropouts as those of training
    losses.py, gradients/                     the loss, and the gradients that TVM lacks
    optimizers.py, schedules.py               new weights
    functions.py                              all of it as functions of Relax
    step.py, state.py                         the compiled step, and what it keeps from call to call
    anomalies.py                              the first operator that made no number
"""

from .api import Settings, compile
from .losses import FunctionLoss, Loss, MeanSquaredError, SoftmaxCrossEntropy
from .optimizers import SGD, Adam, AdamW, Optimizer
from .schedules import Cosine, StepDecay
from .step import TrainingStep

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Cosine",
    "FunctionLoss",
    "Loss",
    "MeanSquaredError",
    "Optimizer",
    "Settings",
    "SoftmaxCrossEntropy",
    "StepDecay",
    "TrainingStep",
    "compile",
]
