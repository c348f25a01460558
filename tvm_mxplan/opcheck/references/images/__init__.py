"""References of images whose points are worked out anew."""
