"""A GPU and a CPU in one function: who runs what, and where tensors cross."""

from .choose_devices import ChooseDevices
from .place_tensors import PlaceTensors
from .sides import Beside
from .take_hints import TakeHints

__all__ = ["Beside", "ChooseDevices", "PlaceTensors", "TakeHints"]
