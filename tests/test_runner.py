"""The runner: the same bytes however the run went."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfrag_jax.errors import UserError
from selfrag_jax.runner import RowError, Unit, make_units, processes_from_environment, run_units
from selfrag_jax.runner_files import Paths, json_line

N = 23


@pytest.fixture
def source(tmp_path) -> pathlib.Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"id": i, "text": "x" * (i * 7 % 5)}) + "\n" for i in range(N)))
    return path


def rows_of(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def length(row: dict) -> int:
    return len(row["text"])


def work(unit: Unit) -> list[dict]:
    """Batch work whose results depend on the whole padded batch, as floating point results do."""
    total = sum(row["id"] for row in unit.items)
    return [{"id": row["id"], "batch": total, "third": total / 3, "é": "ß"} for row in unit.items[: unit.real]]


def run(source, output, work=work, **changes):
    options = {"unit_size": 4, "inputs": [source], "settings": {"decode.threshold": 0.2}, "bucket": length}
    return run_units(rows_of(source), work, output, **{**options, **changes})


@pytest.fixture
def expected(source, tmp_path) -> bytes:
    output = tmp_path / "expected.jsonl"
    run(source, output)
    return output.read_bytes()


@given(st.lists(st.integers(0, 3)), st.integers(1, 5))
def test_units_cover_the_input_once(items, unit_size):
    units = make_units(items, unit_size, bucket=lambda item: item)
    assert sorted(p for unit in units for p in unit.positions) == list(range(len(items)))
    assert [unit.index for unit in units] == list(range(len(units)))
    for unit in units:
        assert len(unit.items) == unit_size
        assert len(unit.positions) == unit.real >= 1
        assert list(unit.positions) == sorted(unit.positions)
        assert set(unit.items) == {unit.bucket}
        assert [items[p] for p in unit.positions] == list(unit.items[: unit.real])
    for key in set(items):  # only the last unit of a bucket is padded
        assert all(unit.real == unit_size for unit in [u for u in units if u.bucket == key][:-1])


def test_output_is_in_input_order_with_its_manifest(source, tmp_path):
    output = tmp_path / "deep" / "out.jsonl"
    report = run(source, output)
    assert [row["id"] for row in rows_of(output)] == list(range(N))
    assert "ß" in output.read_text()
    assert (report.rows, report.bad, report.finished, report.units_kept) == (N, 0, True, 0)
    manifest = json.loads(Paths(output).manifest.read_text())
    assert manifest["settings"] == {"decode.threshold": 0.2}
    assert manifest["rows"] == N
    assert sum(line["rows"] for line in rows_of(Paths(output).timings)) == N
    assert sorted(p.name for p in output.parent.iterdir()) == [
        "out.jsonl",
        "out.jsonl.manifest.json",
        "out.jsonl.timings.jsonl",
    ]


def test_interrupted_and_resumed_is_the_same(source, tmp_path, expected):
    output = tmp_path / "out.jsonl"
    seen = []

    def dying(unit):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(unit.index)
        return work(unit)

    with pytest.raises(KeyboardInterrupt):
        run(source, output, dying)
    assert not output.exists()
    again = []
    report = run(source, output, lambda unit: again.append(unit.index) or work(unit))
    assert not set(seen) & set(again)
    assert (report.units_kept, report.units_done) == (3, len(again))
    assert output.read_bytes() == expected


def test_killed_and_resumed_is_the_same(source, tmp_path, expected):
    output = tmp_path / "out.jsonl"
    program = (
        "import pathlib, sys, time\n"
        f"sys.path[:0] = [{str(pathlib.Path(__file__).parent)!r}]\n"
        "import test_runner as t\n"
        "def slow(unit):\n    time.sleep(0.1)\n    return t.work(unit)\n"
        f"t.run(pathlib.Path({str(source)!r}), pathlib.Path({str(output)!r}), slow)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(Paths(output).parts.glob("unit-*.jsonl"))) < 2:
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not output.exists()
    report = run(source, output)
    assert report.units_kept >= 2
    assert report.units_done >= 1
    assert output.read_bytes() == expected
    assert not Paths(output).parts.exists()


def test_two_processes_give_the_same_file(source, tmp_path, expected):
    output = tmp_path / "out.jsonl"
    program = (
        "import pathlib, sys\n"
        f"sys.path[:0] = [{str(pathlib.Path(__file__).parent)!r}]\n"
        "import test_runner as t\n"
        f"t.run(pathlib.Path({str(source)!r}), pathlib.Path({str(output)!r}),"
        " process_index=int(sys.argv[1]), process_count=2)\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(i)], stderr=subprocess.PIPE, text=True) for i in (0, 1)
    ]
    for child in children:
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors
    assert output.read_bytes() == expected
    assert not Paths(output).parts.exists()


def test_processes_split_at_unit_boundaries(source, tmp_path, expected):
    output = tmp_path / "out.jsonl"
    shares = ([], [])

    def noting(share):
        return lambda unit: share.append(unit.index) or work(unit)

    first = run(source, output, noting(shares[0]), process_index=0, process_count=2)
    assert not first.finished and not output.exists()
    second = run(source, output, noting(shares[1]), process_index=1, process_count=2)
    assert second.finished
    assert all(i % 2 == 0 for i in shares[0]) and all(i % 2 == 1 for i in shares[1])
    assert output.read_bytes() == expected
    # A process that comes late finds the work done.
    assert run(source, output, noting(shares[0]), process_index=0, process_count=2).units_done == 0


def test_a_finished_output_is_left_alone(source, tmp_path):
    output = tmp_path / "out.jsonl"
    run(source, output)
    before = output.stat().st_mtime_ns

    def never(unit):
        raise AssertionError("worked again")

    report = run(source, output, never)
    assert report.finished and report.rows == N and report.units_done == 0
    assert output.stat().st_mtime_ns == before


def part_way(source, output):
    """Leaves three finished units behind."""
    calls = []

    def dying(unit):
        calls.append(unit)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return work(unit)

    with pytest.raises(KeyboardInterrupt):
        run(source, output, dying)


@pytest.mark.parametrize("finished", [True, False])
def test_other_settings_or_inputs_are_refused(source, tmp_path, finished):
    output = tmp_path / "out.jsonl"
    run(source, output) if finished else part_way(source, output)
    with pytest.raises(UserError, match=r"decode.threshold \(0.2 then, 0.5 now\).*--restart"):
        run(source, output, settings={"decode.threshold": 0.5})
    with pytest.raises(UserError, match="unit_size"):
        run(source, output, unit_size=5)
    source.write_text(source.read_text().replace("xxxx", "xxxy", 1))
    with pytest.raises(UserError, match=r"the input \(rows.jsonl\)"):
        run(source, output)
    report = run(source, output, restart=True)
    assert report.finished and report.units_kept == 0


def test_a_file_of_the_users_is_not_overwritten(source, tmp_path):
    output = tmp_path / "out.jsonl"
    output.write_text("precious\n")
    with pytest.raises(UserError, match="not the output of a finished run"):
        run(source, output)
    assert output.read_text() == "precious\n"


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "other rows", "no tail"])
def test_damaged_parts_are_redone(source, tmp_path, expected, damage):
    output = tmp_path / "out.jsonl"
    part_way(source, output)
    part = Paths(output).unit(1)
    content = part.read_bytes()
    changed = {
        "truncated": content[: len(content) // 2],
        "flipped": content.replace(b'"batch": ', b'"batch": 1', 1),
        "empty": b"",
        "other rows": Paths(output).unit(0).read_bytes(),
        "no tail": b"\n".join(content.split(b"\n")[:-2]) + b"\n",
    }[damage]
    assert changed != content
    part.write_bytes(changed)
    report = run(source, output)
    assert report.units_kept == 2
    assert output.read_bytes() == expected


def test_a_kill_between_output_and_manifest_is_mended(source, tmp_path, expected, monkeypatch):
    output = tmp_path / "out.jsonl"
    replace = pathlib.Path.replace

    def dying(self, target):
        if target == Paths(output).manifest:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(pathlib.Path, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        run(source, output)
    monkeypatch.undo()
    assert output.exists() and not Paths(output).manifest.exists()
    report = run(source, output)
    assert report.finished and report.units_done == 0
    assert output.read_bytes() == expected


def picky(unit):
    rows = unit.items[: unit.real]
    return [RowError(str(r["id"]), "too long") if r["id"] in (5, 9) else {"id": r["id"]} for r in rows]


def test_a_bad_row_stops_the_run_unless_skipped(source, tmp_path):
    output = tmp_path / "out.jsonl"
    with pytest.raises(UserError, match=r"row 5: too long; .*--skip_bad"):
        run(source, output, picky, bucket=None)
    assert not output.exists()
    report = run(source, output, picky, bucket=None, skip_bad=True)
    assert (report.rows, report.bad, report.units_kept) == (N - 2, 2, 1)  # unit 0 was kept
    assert [row["id"] for row in rows_of(output)] == [i for i in range(N) if i not in (5, 9)]
    assert rows_of(Paths(output).bad) == [
        {"position": 5, "row_id": "5", "reason": "too long"},
        {"position": 9, "row_id": "9", "reason": "too long"},
    ]


def test_rows_left_out_are_tried_again_without_skip_bad(source, tmp_path):
    output = tmp_path / "out.jsonl"
    run(source, output, picky, bucket=None, skip_bad=True, process_index=0, process_count=2)
    run(source, output, picky, bucket=None, skip_bad=True, process_index=1, process_count=3)
    with pytest.raises(UserError, match="row 5: too long"):
        run(source, output, picky, bucket=None)


def test_faults_of_the_work_are_ours(source, tmp_path):
    with pytest.raises(ValueError, match="0 results for 4 rows"):
        run(source, tmp_path / "out.jsonl", lambda unit: [])


def test_unwritable_output(source, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        run(source, tmp_path / "file" / "out.jsonl")


def test_process_numbers_are_checked(source, tmp_path):
    with pytest.raises(UserError, match="process_index=2 is not below process_count=2"):
        run(source, tmp_path / "out.jsonl", process_index=2, process_count=2)
    with pytest.raises(UserError, match="restart with several processes"):
        run(source, tmp_path / "out.jsonl", process_count=2, restart=True)


def test_processes_from_environment(monkeypatch):
    for name in ("SLURM_PROCID", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert processes_from_environment() == (0, 1)
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert processes_from_environment() == (3, 8)


def test_an_empty_input_gives_an_empty_output(tmp_path):
    source = tmp_path / "none.jsonl"
    source.write_text("")
    report = run(source, tmp_path / "out.jsonl")
    assert report.finished and (tmp_path / "out.jsonl").read_bytes() == b""


def test_lines_are_utf8_and_finite():
    assert json_line({"a": "ß"}) == '{"a": "ß"}\n'.encode()
    assert json_line({"a": "\ud800"}) == b'{"a": "\\ud800"}\n'
    with pytest.raises(ValueError, match="Out of range"):
        json_line({"a": float("nan")})


def test_the_runner_does_not_import_jax():
    program = "import sys, selfrag_jax.runner; sys.exit('jax' in sys.modules or 'tqdm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
