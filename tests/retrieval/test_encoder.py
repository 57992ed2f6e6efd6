"""The encoder: batches, order, special tokens, few shapes, restart."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_encoder import random_text, write_encoder

from selfrag_jax.config import RetrievalConfig
from selfrag_jax.errors import UserError
from selfrag_jax.retrieval import embed
from selfrag_jax.retrieval import encoder as encoder_module
from selfrag_jax.retrieval.encoder import Encoder, identify, length_bucket, plan_batches


@pytest.fixture(scope="module")
def encoder(encoder_dir) -> Encoder:
    return Encoder.load(RetrievalConfig(encoder=str(encoder_dir), max_length=48, batch_tokens=256))


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = np.random.default_rng(1)
    return [random_text(rng, int(rng.integers(1, 60))) for _ in range(120)]


@given(st.lists(st.integers(1, 512), max_size=200), st.integers(1, 2000))
@settings(max_examples=50, deadline=None)
def test_every_text_is_in_one_batch_that_holds_it(lengths, batch_tokens):
    batches = plan_batches(lengths, batch_tokens)
    assert sorted(row for batch in batches for row in batch.rows) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch.rows) <= batch.size
        assert batch.size == 1 or batch.size * batch.length <= batch_tokens
        assert all(batch.length - 64 < lengths[row] <= batch.length for row in batch.rows)
    shapes = {(batch.size, batch.length) for batch in batches}
    assert len(shapes) == len({batch.length for batch in batches}) <= 20


def test_buckets_waste_little_and_stay_few():
    lengths = range(10, 257)
    assert max(1 - length / length_bucket(length) for length in lengths if length > 16) < 0.3
    assert len({length_bucket(length) for length in range(1, 513)}) == 20


def test_order_batches_and_batch_size_do_not_change_an_embedding(encoder, texts):
    whole = encoder.encode(texts, progress=False)
    assert whole.shape == (120, 16) and whole.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)
    assert len(np.unique(whole.round(4), axis=0)) == len({tuple(ids) for ids in encoder.tokenize(texts)})
    order = np.random.default_rng(2).permutation(len(texts))
    np.testing.assert_allclose(encoder.encode([texts[i] for i in order], progress=False), whole[order], atol=2e-6)
    one_by_one = np.concatenate([encoder.encode_queries([text]) for text in texts[:20]])
    np.testing.assert_allclose(one_by_one, whole[:20], atol=2e-6)
    np.testing.assert_allclose(encoder.encode_queries(texts), whole, atol=2e-6)


def test_no_texts(encoder):
    assert encoder.encode([], progress=False).shape == (0, 16)
    assert encoder.encode_queries([]).shape == (0, 16)


def test_queries_compile_for_few_shapes(encoder):
    encoder_module._embed.clear_cache()
    for count in range(1, 5):
        for words in (1, 5, 12, 14, 15, 30):
            encoder.encode_queries([" ".join(["river"] * words)] * count)
    assert encoder_module._embed._cache_size() == 3 * 2  # 1, 2, 4 texts; 16, 32 tokens


def test_text_never_yields_a_special_token(encoder):
    plain, tricky = encoder.tokenize(["capital of [sep] the", "capital of [SEP] the [CLS][PAD]"])
    assert plain[0] == tricky[0] == 2 and plain[-1] == tricky[-1] == 3
    assert not {0, 1, 2, 3} & set(tricky[1:-1]) and len(tricky) > 12
    assert tricky[: len(plain) - 1] == plain[:-1]


def test_truncates_and_keeps_the_separator(encoder):
    (ids,) = encoder.tokenize([" ".join(["river"] * 100)])
    assert len(ids) == 48 and ids[0] == 2 and ids[-1] == 3


def test_unnormalised_is_the_normalised_times_its_length(encoder, encoder_dir, texts):
    config = RetrievalConfig(encoder=str(encoder_dir), normalize=False, max_length=48, batch_tokens=256)
    raw = Encoder.load(config).encode(texts[:10], progress=False)
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    assert abs(lengths - 1).min() > 1e-3
    np.testing.assert_allclose(raw / lengths, encoder.encode(texts[:10], progress=False), atol=2e-6)


def test_fingerprint_follows_weights_and_settings_but_not_the_path(encoder_dir, tmp_path):
    config = RetrievalConfig(encoder=str(encoder_dir), max_length=48)
    copy = shutil.copytree(encoder_dir, tmp_path / "copy")
    same = dataclasses.replace(config, encoder=str(copy))
    others = [
        dataclasses.replace(config, max_length=40),
        dataclasses.replace(config, normalize=False),
        dataclasses.replace(config, encoder=str(write_encoder(tmp_path / "other", seed=1))),
    ]
    assert identify(same).fingerprint() == identify(config).fingerprint() == Encoder.load(config).fingerprint()
    assert len({identify(each).fingerprint() for each in [config, *others]}) == 4


def test_refuses_what_does_not_fit(encoder_dir, tmp_path):
    with pytest.raises(UserError, match="max_length is 65; this encoder takes 3 to 64"):
        Encoder.load(RetrievalConfig(encoder=str(encoder_dir), max_length=65))
    with pytest.raises(UserError, match=r"config\.retrieval\.encoder is empty"):
        Encoder.load(RetrievalConfig())
    copy = shutil.copytree(encoder_dir, tmp_path / "copy")
    fields = json.loads((copy / "config.json").read_text())
    (copy / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"tokenizer\.json: not a readable tokenizer"):
        Encoder.load(RetrievalConfig(encoder=str(copy), max_length=48))
    (copy / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"tokenizer\.json: no such file"):
        Encoder.load(RetrievalConfig(encoder=str(copy), max_length=48))
    shutil.copy(encoder_dir / "tokenizer.json", copy)
    (copy / "config.json").write_text(json.dumps({**fields, "vocab_size": 50}))
    with pytest.raises(UserError, match="the model's vocabulary has 50"):
        Encoder.load(RetrievalConfig(encoder=str(copy), max_length=48))


class KilledError(Exception):
    pass


def test_killed_and_run_again_equals_uninterrupted(encoder, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(embed, "SHARD_BATCHES", 3)
    expected = embed.embed_texts(encoder, texts, tmp_path / "a", progress=False)
    np.testing.assert_allclose(expected, encoder.encode(texts, progress=False), atol=0)
    calls = []
    real = Encoder.embed_batch

    def counted(self, ids, batch):
        calls.append(len(batch.rows))
        if len(calls) == 8:
            raise KilledError
        return real(self, ids, batch)

    monkeypatch.setattr(Encoder, "embed_batch", counted)
    with pytest.raises(KilledError):
        embed.embed_texts(encoder, texts, tmp_path / "b", progress=False)
    assert sorted(path.name for path in (tmp_path / "b").glob("*.npy")) == ["shard-00000.npy", "shard-00001.npy"]
    (tmp_path / "b" / "shard-00002.partial").write_bytes(b"half")
    (tmp_path / "b" / "shard-00001.npy").write_bytes(b"torn")  # a disk that lied about its writes
    resumed = embed.embed_texts(encoder, texts, tmp_path / "b", progress=False)
    np.testing.assert_array_equal(resumed, expected)
    total = len(plan_batches([len(ids) for ids in encoder.tokenize(texts)], 256))
    assert len(calls) - 8 == total - 3, "one shard of three batches was there, and it was computed again"
    embed.embed_texts(encoder, texts, tmp_path / "b", progress=False)
    assert len(calls) - 8 == total - 3, "everything was there"


def test_shards_of_other_texts_are_not_used(encoder, texts, tmp_path):
    embed.embed_texts(encoder, texts[:20], tmp_path, progress=False)
    changed = [*texts[:19], "another"]
    got = embed.embed_texts(encoder, changed, tmp_path, progress=False)
    np.testing.assert_allclose(got, encoder.encode(changed, progress=False), atol=0)
