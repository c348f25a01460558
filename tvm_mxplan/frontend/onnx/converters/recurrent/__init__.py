"""Converters of recurrent layers."""
