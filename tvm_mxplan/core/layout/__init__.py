"""Physical layouts as values: tags, names, converters, and what was decided of them."""
