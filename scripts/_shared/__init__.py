"""Code that several of the commands share."""
