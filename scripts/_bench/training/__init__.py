"""Training beside PyTorch, in an environment that has torch, torchvision, timm and transformers."""
