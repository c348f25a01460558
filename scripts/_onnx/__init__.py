"""The command scripts/onnx_nodes: ONNX's own test cases, engine by engine."""
