"""truenorm stats: what it says of rows of any size and kind."""

import fractions
import json
import math
import sys

import numpy as np
import pytest


def rows(shape, dtype=np.float32, seed=7):
    return (np.random.default_rng(seed).standard_normal(shape) * 3 + 2).astype(dtype)


def test_worked_batch_statistics(truenorm, data):
    report = json.loads(truenorm.ok("stats", data / "worked_batch/x.npy", "--json"))
    first, second = report["each_row"][:2]
    for row, mean, sd in ((first, "1.410", "2.718"), (second, "0.350", "2.670")):
        assert f"{row['before']['mean']:.3f}" == mean and f"{row['before']['unbiased_sd']:.3f}" == sd
        assert f"{row['after']['unbiased_sd']:.6f}" == "1.069044" and f"{row['after']['sd']:.6f}" == "0.999999"
        assert abs(row["after"]["mean"]) < 1e-7
    text = truenorm.ok("stats", data / "worked_batch/x.npy")
    assert "-0.000000" not in text and "1.069044" in text


def test_stats_summary_counts_rows_that_are_not_finite(truenorm, tmp_path):
    x = rows((6, 4))
    x[2, 1] = np.nan
    x[4, 0] = np.inf
    np.save(tmp_path / "x.npy", x)
    report = json.loads(truenorm.ok("stats", "x.npy", "--limit", "3", "--json"))
    assert report["all_rows"]["before"]["rows_not_finite"] == 2 and len(report["each_row"]) == 3
    assert report["each_row"][2]["before"] == {"mean": "NaN", "sd": "NaN", "unbiased_sd": "NaN", "min": "NaN", "max": "NaN"}
    text = truenorm.ok("stats", "x.npy", "--limit", "3", "--histogram", "5")
    assert "the first 3 of 6 rows" in text and "2 rows hold NaN or Inf" in text and "┆" in text


def exact_sd(row, unbiased):
    values = [fractions.Fraction(float(v)) for v in row]
    mean = sum(values) / len(values)
    square = sum((v - mean) ** 2 for v in values) / (len(values) - unbiased)
    # The root of a rational number, to more places than float64 has.
    scale = 1 << 2400
    root = fractions.Fraction(math.isqrt(square.numerator * scale // square.denominator), 1 << 1200)
    return float(root) if root <= sys.float_info.max else math.inf


def rows_of_any_size():
    near = np.nextafter(1.5e308, np.inf)
    return np.array([
        [1e308, -1e308, 1e308, -1e308], [1.7e308, 1.6e308, 1.7e308, 1.5e308], [1e200, 1, 2, -3], [1.5e308, near, 1.5e308, near],
        [1e308] * 4, [5e-324, 0, 0, 0], [1e-310, 2e-310, -3e-310, 0], [3e-200, 1e-200, 5e-200, 7e-200], [1e-160, 2e-160, 1e-160, 2e-160],
        [1.7e308, -1.7e308, 1.7e308, -1.7e308], [3, 1, 5, 7], [0, 0, 0, 0],
    ])


@pytest.mark.parametrize("axis", [0, 1])
def test_stats_of_finite_rows_of_any_size(truenorm, tmp_path, axis):
    x = rows_of_any_size()
    np.save(tmp_path / "x.npy", np.moveaxis(x, -1, axis))
    report = json.loads(truenorm.ok("stats", "x.npy", "--json", "--eps", 0, "--axis", axis), parse_constant=pytest.fail)
    assert report["all_rows"]["before"]["rows_not_finite"] == 0
    for row, got in zip(x, report["each_row"]):
        for name, unbiased in (("sd", 0), ("unbiased_sd", 1)):
            want = exact_sd(row, unbiased)
            assert float(got["before"][name]) == pytest.approx(want, rel=2.0**-36, abs=0), (row, name)
        exact_mean = sum(map(fractions.Fraction, row)) / len(row)
        assert abs(got["before"]["mean"] - exact_mean) <= max(map(abs, row)) * 2.0**-46
    assert report["all_rows"]["before"]["sd"] == [0, 1.7e308]
    assert "NaN or Inf" not in truenorm.ok("stats", "x.npy", "--eps", 0, "--axis", axis)


def test_stats_and_the_histogram_agree(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", rows_of_any_size())
    text = truenorm.ok("stats", "x.npy", "--histogram", 2)
    assert "before: mean 2.500e199, sd 4.330e199" in text and "4.330127e199" in text


def test_a_histogram_of_a_row_that_is_not_finite(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", np.array([[np.inf, 1, 2, 3]]))
    text = truenorm.ok("stats", "x.npy", "--histogram", 0)
    assert "before: mean 2.000, sd 0.816" in text and "after: nothing is finite" in text
    assert "NaN or Inf, left out above: 1 " in text and "NaN or Inf, left out above: 4\n" in text


def test_an_unbiased_sd_beyond_float64_is_infinite(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1.7e308, -1.7e308]]))
    report = json.loads(truenorm.ok("stats", "x.npy", "--json"))
    assert report["each_row"][0]["before"]["sd"] == 1.7e308 and report["each_row"][0]["before"]["unbiased_sd"] == "Infinity"


def test_json_of_an_empty_file(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((0, 4), np.float32))
    report = json.loads(truenorm.ok("stats", "x.npy", "--json"))
    assert report["rows"] == 0 and report["all_rows"]["before"]["mean"] is None
    assert "which has no rows" in truenorm.bad("stats", "x.npy", "--histogram", "0")


def test_one_is_not_written_as_many(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", np.full((1, 1), np.nan, np.float32))
    assert "(1, 1), 1 row of 1 feature, eps" in truenorm.ok("stats", "x.npy")
    assert "\n1 row holds NaN or Inf" in truenorm.ok("stats", "x.npy")
    assert truenorm.run("apply", "x.npy", "-o", "y.npy").stderr.startswith("y.npy: 1 row of 1 feature, ")
    assert "backward: 1 row of 1 feature," in truenorm.run("backward", "x.npy", "x.npy", "--dx", "dx.npy").stderr
    assert "2 values, x has 1 feature; expected 1\n" in truenorm.bad("apply", "x.npy", "-o", "y.npy", "--gamma", "1,2")
