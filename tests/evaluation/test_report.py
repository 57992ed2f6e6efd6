"""Tables, and their place in a file."""

import pytest

from selfrag_jax.errors import UserError
from selfrag_jax.evaluation.report import markers, put_into, table


def test_table():
    assert table(["a", "b"], [["x|y", "1"]]) == "| a | b |\n| --- | ---: |\n| x\\|y | 1 |"


def test_put_into_replaces_what_stands_between_the_markers_only(tmp_path):
    begin, end = markers("figures")
    path = tmp_path / "README.md"
    path.write_text(f"before\n{begin}\nold\n{end}\nafter\n", "utf-8")
    put_into(path, "figures", "new\n")
    put_into(path, "figures", "newer")
    assert path.read_text("utf-8") == f"before\n{begin}\nnewer\n{end}\nafter\n"
    assert [p.name for p in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.parametrize("text", ["none", "{end}\n{begin}", "{begin}\n{begin}\n{end}", "{begin}"])
def test_a_file_without_the_markers_is_left_alone(tmp_path, text):
    begin, end = markers("figures")
    path = tmp_path / "README.md"
    path.write_text(text.format(begin=begin, end=end), "utf-8")
    with pytest.raises(UserError, match=r"README.md: expected the lines"):
        put_into(path, "figures", "new")
    assert path.read_text("utf-8") == text.format(begin=begin, end=end)
    with pytest.raises(UserError, match="cannot be read"):
        put_into(tmp_path / "none.md", "figures", "new")
