"""Configs: files, overrides, checks, and what a user reads when one is wrong."""

import pathlib
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfrag_jax.config import Config
from selfrag_jax.config_check import CHOICES, RANGES, field_types, flatten, nearest, validate
from selfrag_jax.config_file import config_from_json, config_to_json, load_config
from selfrag_jax.errors import UserError

ROOT = pathlib.Path(__file__).parent.parent


def write_config(folder: pathlib.Path, body: str) -> pathlib.Path:
    path = folder / "mine.py"
    text = "from selfrag_jax.config import Config, DecodeConfig\n\n\ndef get_config():\n    config = Config()\n"
    path.write_text(text + textwrap.indent(textwrap.dedent(body), "    ") + "    return config\n")
    return path


def test_every_shipped_config_is_valid():
    paths = sorted((ROOT / "configs").glob("*.py"))
    assert len(paths) >= 3
    for path in paths:
        load_config(path)


def test_the_published_recipe():
    config = load_config(ROOT / "configs" / "selfrag_7b.py")
    # SELFRAG.md §4: 3 epochs of 145,619 rows in batches of 128.
    assert config.train.steps == 3412
    assert (config.train.learning_rate, config.train.warmup_ratio, config.train.weight_decay) == (2e-5, 0.03, 0.0)
    assert (config.data.batch_size, config.data.sequence_length) == (128, 2048)


def test_checks_name_only_fields_that_exist():
    types = dict(field_types())
    assert CHOICES.keys() <= types.keys()
    assert RANGES.keys() <= types.keys()
    defaults = flatten(Config())
    assert all(defaults[name] in choices for name, choices in CHOICES.items())
    assert all(types[name] in (int, float) for name in RANGES)


def test_flatten_lists_every_setting():
    flat = flatten(Config())
    assert flat["seed"] == 0
    assert flat["decode.threshold"] == 0.2
    assert list(flat) == [name for name, _ in field_types()]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("decode.treshold", "decode.threshold"),
        ("threshold", "decode.threshold"),
        ("train.threshold", "decode.threshold"),
        ("retrieval.topk", "retrieval.top_k"),
        ("model.adaptor", "model.adapter"),
        ("decode.w_is_rel", "decode.w_isrel"),
        ("train.lr_schedule", "train.schedule"),
        ("sead", "seed"),
        ("xyzzy", ""),
    ],
)
def test_nearest_right_name(wrong, right):
    assert nearest(wrong) == right


@given(st.sampled_from([name for name, _ in field_types()]), st.data())
def test_one_slip_in_a_name_is_recognised(name, data):
    last = name.rpartition(".")[2]
    place = data.draw(st.integers(1, max(1, len(last) - 2)))
    slip = name[: len(name) - len(last) + place] + name[len(name) - len(last) + place + 1 :]
    if len(last) >= 6 and slip not in dict(field_types()):
        assert nearest(slip) == name


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("decode.retrieve", "tokn", "'tokn' is not one of threshold, token, always, never"),
        ("decode.beam", 0, "decode.beam=0 is too small; the least is 1"),
        ("decode.threshold", 1.5, "decode.threshold=1.5 is too large; the most is 1"),
        ("decode.threshold", float("nan"), "not a finite number"),
        ("decode.beam", "2", "of type str; a whole number is wanted"),
        ("decode.beam", True, "of type bool; a whole number is wanted"),
        ("decode.beam", 2.0, "of type float; a whole number is wanted"),
        ("data.pack", 1, "of type int; true or false is wanted"),
        ("model.path", None, "of type NoneType; a text is wanted"),
    ],
)
def test_wrong_values_are_refused(field, value, words):
    config = Config()
    holder, _, name = field.rpartition(".")
    setattr(getattr(config, holder), name, value)
    with pytest.raises(UserError) as caught:
        validate(config)
    assert words in str(caught.value)
    assert field in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_whole_number_serves_as_a_number():
    config = Config()
    config.decode.threshold = 0
    value = validate(config).decode.threshold
    assert type(value) is float


def test_microbatches_must_divide_the_batch():
    config = Config()
    config.train.microbatches = 3
    with pytest.raises(UserError, match=r"train.microbatches=3 does not divide data.batch_size=8"):
        validate(config)


def test_a_mistyped_field_in_a_config_file(tmp_path):
    path = write_config(tmp_path, "config.decode.treshold = 0.5\n")
    with pytest.raises(
        UserError, match=r"mine.py: there is no setting decode.treshold; did you mean decode.threshold\?"
    ):
        load_config(path)


def test_a_mistyped_argument_in_a_config_file(tmp_path):
    path = write_config(tmp_path, "config.decode = DecodeConfig(treshold=0.5)\n")
    with pytest.raises(
        UserError, match=r"mine.py:6: DecodeConfig has no field treshold; did you mean decode.threshold\?"
    ):
        load_config(path)


def test_a_group_replaced_by_a_value(tmp_path):
    path = write_config(tmp_path, "config.decode = 3\n")
    with pytest.raises(UserError, match=r"mine.py: decode must be a DecodeConfig, not int"):
        load_config(path)


def test_errors_in_a_config_file_name_the_line(tmp_path):
    with pytest.raises(UserError, match=r"mine.py:6: ZeroDivisionError: "):
        load_config(write_config(tmp_path, "config.seed = 1 // 0\n"))
    with pytest.raises(UserError, match=r"mine.py:6: SyntaxError"):
        load_config(write_config(tmp_path, "config.seed = = 1\n"))
    with pytest.raises(UserError, match=r"mine.py:6: ModuleNotFoundError: No module named 'nowhere'"):
        load_config(write_config(tmp_path, "import nowhere\n"))


def test_other_faults_of_a_config_file(tmp_path):
    with pytest.raises(UserError, match=r"absent.py: there is no such config file"):
        load_config(tmp_path / "absent.py")
    with pytest.raises(UserError, match=r"demo.py"):  # the ones that are there are named
        load_config(ROOT / "configs" / "absent.py")
    empty = tmp_path / "empty.py"
    empty.write_text("")
    with pytest.raises(UserError, match=r"empty.py: defines no get_config\(\)"):
        load_config(empty)
    empty.write_text("def get_config():\n    return {}\n")
    with pytest.raises(UserError, match=r"returns dict, not selfrag_jax.config.Config"):
        load_config(empty)
    other = tmp_path / "config.json"
    other.write_text("{}")
    with pytest.raises(UserError, match=r"a config is a Python file"):
        load_config(other)


def test_a_config_may_build_on_its_neighbour(tmp_path):
    (tmp_path / "base_of_mine.py").write_text("SEED = 7\n")
    path = tmp_path / "mine.py"
    path.write_text(
        "import base_of_mine\nfrom selfrag_jax.config import Config\n\n\n"
        "def get_config():\n    return Config(seed=base_of_mine.SEED)\n"
    )
    assert load_config(path).seed == 7


@given(seed=st.integers(0, 2**31), threshold=st.floats(0, 1), path=st.text())
def test_json_round_trip(seed, threshold, path):
    config = Config(seed=seed)
    config.decode.threshold = threshold
    config.model.path = path
    assert config_from_json(config_to_json(config)) == config


def test_json_faults():
    with pytest.raises(UserError, match=r"x.json: not JSON"):
        config_from_json("{", "x.json")
    with pytest.raises(UserError, match=r"there is no setting decode.treshold; did you mean decode.threshold\?"):
        config_from_json('{"decode": {"treshold": 1}}')
    with pytest.raises(UserError, match=r"decode must be a DecodeConfig, not int"):
        config_from_json('{"decode": 1}')
    with pytest.raises(UserError, match=r"a JSON object is wanted, not list"):
        config_from_json("[]")
    assert config_from_json('{"decode": {"threshold": 1}}').decode.threshold == 1.0
