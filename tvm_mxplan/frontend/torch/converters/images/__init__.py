"""Images resized, largest elements of their windows, pixels made of channels."""
