"""Checks of what users state.

numbers.py   numbers: rates, shares, counts; labels
states.py    what ``load_state_dict`` is given
"""

from .numbers import float_of, int_of, is_number, whole_numbers
from .states import check_state

__all__ = ["check_state", "float_of", "int_of", "is_number", "whole_numbers"]
