"""Random ONNX graphs, ours against onnxruntime: the code of scripts/random_graphs."""
