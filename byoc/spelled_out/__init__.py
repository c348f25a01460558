"""Operators that importers and exporters spell out, and libraries have as one.

activations.py   functions of one number
norms.py         rows of numbers less their mean, over their deviation
"""
