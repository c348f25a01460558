"""What cuDNN has for a GPU, asked without one."""
