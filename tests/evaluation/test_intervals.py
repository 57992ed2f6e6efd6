"""Shares and their intervals, held against the formulas for a binomial and a paired difference."""

import numpy as np
import pytest

from selfrag_jax.evaluation.intervals import difference, share


def test_share_of_questions():
    hits = [True] * 90 + [False] * 10
    found = share(hits)
    spread = 1.96 * (0.9 * 0.1 / 100) ** 0.5
    assert (found.value, found.n) == (0.9, 100)
    assert found.low == pytest.approx(0.9 - spread, abs=0.015) and found.high == pytest.approx(0.9 + spread, abs=0.015)
    assert share(hits) == found, "the same sample gives the same interval"
    assert found.percent().startswith("90.0 (8")


def test_where_all_are_alike_the_interval_is_the_exact_one():
    from scipy.stats import binomtest

    exact = binomtest(70, 70).proportion_ci(0.95)
    assert share([True] * 70).low == pytest.approx(exact.low) and share([True] * 70).high == 1
    none = share([False] * 70)
    assert none.high == pytest.approx(1 - exact.low) and (none.value, none.low) == (0, 0)


def test_nothing_counted_is_a_dash():
    assert share([]).percent() == share([0.0], [0.0]).percent() == "–"


def test_units_are_drawn_whole():
    """Ten citations of one answer stand and fall together: the interval is wider than that of ten answers."""
    clustered = share([10, 0] * 10, [10, 10] * 10)
    apart = share(([True] * 10 + [False] * 10) * 10)
    assert clustered.value == apart.value == 0.5 and clustered.n == apart.n == 200
    assert clustered.high - clustered.low > 2 * (apart.high - apart.low)


def test_items_of_one_unit_are_drawn_together():
    hits, about = ([True] * 10 + [False] * 10) * 10, [number // 10 for number in range(200)]
    assert share(hits, units=about) == share([10, 0] * 10, [10, 10] * 10)
    together = difference(hits, [False] * 200, about)
    assert (together.low, together.high) == (share(hits, units=about).low, share(hits, units=about).high)


def test_items_that_count_nothing_do_not_narrow_the_interval():
    assert share([1] * 10 + [0] * 290, [1] * 10 + [0] * 290).low == share([1] * 10).low


def test_difference_is_paired():
    rng = np.random.default_rng(0)
    first = rng.random(200) < 0.5
    same = difference(first, first)
    assert same.value == 0 and same.low == -same.high and 0 < same.high < 0.02, "200 alike do not prove that all are"
    one = difference([True], [False])
    assert one.value == 1 and one.low < 0.1, "nor does one of them prove anything"
    better = first | (rng.random(200) < 0.2)
    gained = difference(better, first)
    assert gained.low > 0 and gained.value == pytest.approx(better.mean() - first.mean())
