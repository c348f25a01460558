"""Complex numbers as pairs along a last axis, and Fourier transforms of them."""
