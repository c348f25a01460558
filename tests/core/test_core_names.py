"""A newcomer finds the region program by its folder's name."""

from __future__ import annotations

import subprocess
import sys

from tvm_mxplan.core import codec, program
from tvm_mxplan.core.program import program as module


def test_the_folder_has_every_name_of_the_program() -> None:
    assert {"Value", "Step", "Operand", "Program", "Convolution", "EltwisePostOp"} <= set(program.__all__)
    assert program.__all__ == module.__all__
    for name in module.__all__:
        assert getattr(program, name) is getattr(module, name)


def test_a_program_is_written_with_these_names_alone() -> None:
    values = (
        program.Value("x", (2, 3), "float32", "input", "ab", 0),
        program.Value("y", (2, 3), "float32", "output", "ab", 0),
    )
    operands = (program.Operand("src", 0), program.Operand("dst", 1))
    step = program.Step("relu", program.Eltwise("relu", 0.0, 0.0), operands)
    region = program.Program("region", values, (step,))
    assert codec.decode(codec.encode(region)) == region


def test_importing_them_loads_no_tvm() -> None:
    code = "import sys; from tvm_mxplan.core import codec, program; sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
