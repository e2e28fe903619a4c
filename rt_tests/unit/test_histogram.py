"""Log-linear latency histogram."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torqueloop.cython_kernels.clock.histogram import Histogram


def filled(values):
    h = Histogram()
    for v in values:
        h.add(v)
    return h


def test_empty_histogram_reads_zero():
    h = Histogram()
    assert (h.count, h.max_ns, h.min_ns, h.percentile(99), h.mean_ns, h.buckets()) == (0, 0, 0, 0, 0.0, [])


@given(st.lists(st.integers(0, 2**36 - 1), min_size=1, max_size=200), st.sampled_from([0, 1, 50, 90, 99, 99.9, 100]))
def test_percentile_is_within_a_64th_of_the_exact_one(values, p):
    exact = sorted(values)[max(0, -int(-round(p * len(values) / 100, 6) // 1) - 1)]
    got = filled(values).percentile(p)
    assert exact <= got <= exact + exact // 64 + 1


@given(st.integers(0, 2**36 - 1))
def test_each_value_falls_into_the_bucket_whose_edges_enclose_it(value):
    [(edge, count)] = filled([value]).buckets()
    assert count == 1
    assert edge <= value < edge + max(1, edge // 64 + 1)


def test_max_min_mean_and_count_are_exact():
    values = [random.Random(1).randrange(10**9) for _ in range(1000)]
    h = filled(values)
    assert (h.count, h.max_ns, h.min_ns) == (1000, max(values), min(values))
    assert h.mean_ns == pytest.approx(sum(values) / 1000, rel=1e-12)


def test_values_beyond_the_range_keep_their_exact_maximum():
    h = filled([1, 2**40])
    assert h.max_ns == 2**40 and h.percentile(100) == 2**40 and h.count == 2


def test_negative_values_are_counted_not_hidden():
    h = filled([-5, 10])
    assert h.negative == 1 and h.count == 2 and h.min_ns == -5


def test_buckets_add_up_to_count_and_merge_adds():
    a, b = filled(range(0, 100000, 7)), filled([5, 10**8])
    a.merge(b)
    assert sum(n for _, n in a.buckets()) == a.count == len(range(0, 100000, 7)) + 2
    assert a.max_ns == 10**8


@given(st.lists(st.integers(-(10**6), 2**36 + 10**6), max_size=100), st.lists(st.integers(0, 10**9), max_size=100))
def test_stored_histograms_read_back_and_add_up_like_the_values_themselves(a, b):
    whole = filled(a + b)
    read = Histogram()
    for part in (filled(a), filled(b)):
        read.load(json.loads(json.dumps(part.summary())))
    numbers = [{k: v for k, v in h.summary().items() if k != "hist"} for h in (read, whole)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-9)
    assert read.buckets() == whole.buckets() and read.negative == whole.negative


def test_stored_histogram_that_does_not_add_up_is_refused():
    good = filled([100, 200]).summary()
    for bad, cause in (({"count": 3}, "allowed count = 3"), ({"hist": [[0.129, 2]]}, "lower edges")):
        with pytest.raises(ValueError, match=cause):
            Histogram().load({**good, **bad})


def test_999_of_1000_is_not_disturbed_by_one_outlier():
    h = filled([1000] * 999 + [10**7])
    assert h.percentile(99.9) < 1100 and h.percentile(100) == 10**7


def test_summary_is_in_microseconds():
    s = filled([2000] * 10).summary()
    assert s["max"] == 2.0 and s["p50"] == 2.0 and s["hist"][0][1] == 10


def test_percentile_outside_0_to_100_is_refused():
    with pytest.raises(ValueError, match="allowed 0..100"):
        Histogram().percentile(101)
