"""Asks for the engines that cuDNN has for a GPU, without one."""
