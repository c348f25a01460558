"""Converters of operators on images: sizes, windows and boxes."""
