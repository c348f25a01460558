"""CSV in and out, and the command line with its exit codes and one-line errors."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from allocation_cases import random_singles, single

from tvm_mxplan.core.allocation import Item, Problem, ProblemError, Rectangle, read_csv, solve, write_csv
from tvm_mxplan.core.solve import main, seconds

GOOD = "id,lower,upper,size\na,0,2,100\nb,1,3,80\nc,2,4,60\n"


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "problem.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("seed", range(10))
def test_what_was_written_is_read(tmp_path: Path, seed: int) -> None:
    problem = random_singles(seed)
    write_csv(tmp_path / "problem.csv", problem)
    assert read_csv(tmp_path / "problem.csv") == problem
    write_csv(tmp_path / "plan.csv", problem, solve(problem))
    assert read_csv(tmp_path / "plan.csv") == problem


def test_the_format_is_that_of_minimalloc(tmp_path: Path) -> None:
    problem = Problem((single("a", 0, 2, 100), single("b", 1, 3, 80)))
    write_csv(tmp_path / "plan.csv", problem, solve(problem))
    lines = (tmp_path / "plan.csv").read_text().splitlines()
    assert lines[0] == "id,lower,upper,size,offset"
    assert lines[1].startswith("a,0,2,100,")


def test_names_of_any_script_are_utf_8(tmp_path: Path) -> None:
    problem = Problem((single("größe, \u63a8", 0, 2, 100),))
    write_csv(tmp_path / "plan.csv", problem)
    assert (tmp_path / "plan.csv").read_bytes() == 'id,lower,upper,size\n"größe, \u63a8",0,2,100\n'.encode()
    assert read_csv(tmp_path / "plan.csv") == problem


def test_columns_in_any_order_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeffsize,note, id ,upper,lower\r\n\r\n100,x, a ,2,0\r\n")
    assert read_csv(path).items == (single("a", 0, 2, 100),)


def test_groups_and_scopes_cannot_be_written(tmp_path: Path) -> None:
    group = Item("g", (Rectangle(0, 2, 0, 8), Rectangle(1, 2, 8, 8)))
    with pytest.raises(ProblemError, match="'g' is a group"):
        write_csv(tmp_path / "x.csv", Problem((group,)))
    with pytest.raises(ProblemError, match="expected one in CSV"):
        write_csv(tmp_path / "x.csv", Problem((group, Item("h", group.rectangles, scope="local"))))
    assert not (tmp_path / "x.csv").exists()


BAD = [
    ("id,lower,size\na,0,1\n", ":1: column 'upper' is missing, expected id,lower,upper,size"),
    ("id,lower,upper,size,size\na,0,1,2,2\n", ":1: column 'size' is there twice"),
    ("", ":1: the file is empty, expected"),
    ("\n\n", ":1: column 'id' is missing"),
    (GOOD + "d,-1,2,5\n", ":5: lower is '-1', expected an integer from 0"),
    (GOOD + "d,1,2,-5\n", ":5: size is '-5', expected an integer from 0"),
    (GOOD + "d,1,2,5.5\n", ":5: size is '5.5'"),
    (GOOD + "d,1,2,\n", ":5: size is ''"),
    (GOOD + "d,1,2,1_000\n", ":5: size is '1_000'"),
    (GOOD + "d,1,2,٣\n", ":5: size is '٣'"),
    (GOOD + "d,1,2,9223372036854775808\n", ":5: size is '9223372036854775808', expected"),
    (GOOD + f"d,1,2,{'9' * 5000}\n", ":5: size is '999"),
    (GOOD + "d,2,2,5\n", ":5: upper is 2, expected more than lower, which is 2"),
    (GOOD + "\nd,3,2,5\n", ":6: upper is 2, expected more than lower, which is 3"),
    (GOOD + "d,1,2\n", ":5: 3 fields, expected 4"),
    (GOOD + "d,0,2,9223372036854775800\n", ": item 'd': the items of scope 'global' up to this one, stacked"),
    (b"id,lower,upper,size\n\xff\xfe,0,1,2\n", ": cannot be read (not UTF-8 text), expected a CSV file"),
    ('id,lower,upper,size\n"' + "x" * 200_000 + '",0,1,2\n', ":2: field larger than field limit"),
]


@pytest.mark.parametrize("text, expected", BAD, ids=[expected[:40] for _, expected in BAD])
def test_bad_files_are_refused_in_one_line(tmp_path: Path, capsys, text: str | bytes, expected: str) -> None:
    path = written(tmp_path, text)
    assert main([str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert f"{path}{expected}" in captured.err


@pytest.mark.parametrize("name", ["missing.csv", "."])
def test_what_is_no_file_is_refused_in_one_line(tmp_path: Path, capsys, name: str) -> None:
    assert main([str(tmp_path / name)]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert f"{tmp_path / name}: cannot be read" in captured.err


def test_no_seconds_are_a_number_of_seconds() -> None:
    assert seconds("0") == 0.0 and seconds("1.5") == 1.5


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--capacity", "-5"], "'-5' is not an integer"),
        (["--capacity", "\u00b2"], "'\u00b2' is not an integer"),
        (["--max-nodes", "\u0663"], "'\u0663' is not an integer"),
        (["--seconds", "soon"], "'soon' is not a number of seconds"),
        (["--seconds", "nan"], "'nan' is not a number of seconds"),
        (["--alignment", "0"], "alignment is 0, expected 1 or more"),
        (["--fit"], "--fit needs --capacity"),
        (["--capacty", "5"], "unrecognized arguments"),
        (["--out", "no/such/folder/plan.csv"], "no/such/folder/plan.csv: No such file or directory"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(tmp_path: Path, capsys, arguments, expected: str) -> None:
    path = str(written(tmp_path, GOOD))
    try:
        code = main([path, *arguments])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (1, "")
    assert captured.err.count("\n") == 1
    assert expected in captured.err


def test_one_line_of_json(tmp_path: Path, capsys) -> None:
    path, out = written(tmp_path, GOOD), tmp_path / "plan.csv"
    assert main([str(path), "--capacity", "180", "--fit", "--out", str(out)]) == 0
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    result = json.loads(line)
    assert result.pop("seconds") >= 0
    assert result == {
        "height": 180,
        "lower_bound": 180,
        "status": "optimal: equals the lower bound",
        "nodes": 0,
    }
    assert out.read_text().startswith("id,lower,upper,size,offset\n")


def test_exit_code_2_where_it_does_not_fit(tmp_path: Path, capsys) -> None:
    assert main([str(written(tmp_path, GOOD)), "--capacity", "179"]) == 2
    assert json.loads(capsys.readouterr().out)["height"] == 180


def test_from_the_shell_without_tvm(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    code = "import sys, tvm_mxplan.core.solve as s; s.main(sys.argv[1:]); exit('tvm' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    command = [sys.executable, "-m", "tvm_mxplan.core.solve", path, "--capacity", "1"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (2, "")
    assert json.loads(run.stdout)["height"] == 180


def test_offsets_are_multiples_of_what_is_asked_for(tmp_path: Path, capsys) -> None:
    path = str(written(tmp_path, "id,lower,upper,size\na,0,2,3\nb,1,3,4\nc,0,3,1\n"))
    heights = []
    for arguments in ([], ["--alignment", "1"], ["--alignment", "2"], ["--alignment", "4"]):
        assert main([path, *arguments]) == 0
        heights.append(json.loads(capsys.readouterr().out)["height"])
    assert heights == [8, 8, 9, 9]
