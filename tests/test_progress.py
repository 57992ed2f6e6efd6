"""The bar of long jobs: in a log it must not write a line for every row."""

import io

from selfrag_jax import progress


def test_in_a_log_the_bar_writes_a_beginning_and_an_end(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with progress.bar(1000, 400, "row", "adaptive") as bar:
        for _ in range(600):
            bar.update(1)
    lines = [line for line in log.getvalue().split("\r") if line.strip()]
    assert len(lines) == 2, lines
    assert "400/1000" in lines[0] and "1000/1000" in lines[1] and lines[1].startswith("adaptive")
