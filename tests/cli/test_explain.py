"""truenorm explain: the walk-through, digit for digit, and what it does with bad input."""

import json

import numpy as np
import pytest

# The whole text for [3, 1, 5, 7] with gamma = 2 and beta = 1. Every number in it can be checked by hand.
WALK_THROUGH = """\
Layer normalization of one token, d = 4 features
   x = [3, 1, 5, 7]
   gamma = 2, beta = 1

   by hand (eps taken as 0)                        computed (eps = 1e-5)
   ----------------------------------------------  ----------------------------------
1. mean = (3 + 1 + 5 + 7)/4
   16/4 = 4.0000                                   4.0000
2. variance = sum of (x - mean)^2, divided by 4 (biased), not by 3
   (1 + 9 + 1 + 9)/4 = 20/4 = 5.0000               5.0000
3. standard deviation = sqrt(variance); computed: sqrt(variance + eps)
   2.2361                                          2.2361
4. normalized: x_hat = (x - mean)/standard deviation
   [-0.447, -1.342, 0.447, 1.342]                  [-0.4472, -1.3416, 0.4472, 1.3416]
   check: (0.200 + 1.800 + 0.200 + 1.800)/4 = 1.0  mean 0.000000, sd 0.999999
5. gamma*x_hat + beta
   [-0.894 + 1, -2.684 + 1, 0.894 + 1, 2.684 + 1]  [0.106, -1.683, 1.894, 3.683]
   = [0.106, -1.684, 1.894, 3.684]                 mean 1.000, sd 2.000
   mean 1, standard deviation 2

Verification (computed)
   Input:                         [3, 1, 5, 7]
   Mean:                          4.0000
   Variance:                      5.0000
   Standard deviation:            2.2361
   Normalized:                    [-0.4472, -1.3416, 0.4472, 1.3416]
   Normalized mean:               0.00000000
   Normalized standard deviation: 0.999999 (biased)
"""


def test_walk_through(truenorm):
    assert truenorm.ok("explain", "3", "1", "5", "7", "--gamma", "2", "--beta", "1") == WALK_THROUGH


def test_options_may_stand_anywhere_and_numbers_may_be_lists(truenorm):
    for arguments in (
        ["--gamma=2", "3,1", "5,7", "--beta=1"],
        ["3, 1, 5, 7", "--beta", "1", "--gamma", "2,2,2,2"],
        ["[3, 1, 5, 7]", "--eps", "1e-5", "--gamma", "2", "--beta", "1,1,1,1"],
        ["--gamma", "2", "--beta", "+1", "3.0", "1e0", ".5e1", "7."],
        ["3,", "1,", "5,", "7", "--gamma", "2 2 2 2", "--beta", "[1, 1, 1, 1]"],
        ["3 1  5 7", "--gamma=2", "--beta=1"],
        ["[3.", "1.", "5.", "7.]", "--gamma=2", "--beta=1"],
    ):
        assert truenorm.ok("explain", *arguments) == WALK_THROUGH, arguments


def test_without_gamma_and_beta_they_are_one_and_zero(truenorm):
    text = truenorm.ok("explain", 3, 1, 5, 7)
    assert "gamma = 1 (not given), beta = 0 (not given)" in text
    assert "[-0.447 + 0, -1.342 + 0, 0.447 + 0, 1.342 + 0]  [-0.447, -1.342, 0.447, 1.342]" in text


def test_negative_numbers_anywhere(truenorm):
    text = truenorm.ok("explain", "-.5", "1e-5", "-2", "--gamma", "-1,2,-.5", "--beta", "-1")
    assert "x = [-0.5, 1e-5, -2]" in text
    assert "gamma = [-1, 2, -0.5], beta = -1" in text
    assert "mean = (-0.5 + 1e-5 - 2)/3" in text
    assert "[-0.392 - 1, 1.962 - 1, 0.686 - 1]" in text
    want = truenorm.ok("explain", "-1", "-2", "-.5e1")
    for arguments in (["-1,-2,-.5e1"], ["-1,", "-2,", "-.5e1"], ["-1 -2 -.5e1"], ["-1", ",", "-2 ,-.5e1"], ["[-1", "-2", "-.5e1]"],
                      ["--", "-1", "-2", "-.5e1"], ["-1", "--", "-2", "-.5e1"], ["-1", "-2", "-.5e1", "--"]):
        assert truenorm.ok("explain", *arguments) == want, arguments
    # The typographic minus sign, as it comes out of a paper.
    assert truenorm.ok("explain", "\u22121", "2") == truenorm.ok("explain", "-1", "2")


def test_negative_zero_is_never_printed(truenorm):
    for numbers in (["-1", "1"], ["-0.0", "0"], ["0.1", "0.2", "0.3"], ["-1e-9", "1e-9"]):
        words = truenorm.ok("explain", *numbers).replace("[", " ").replace(",", " ").split()
        assert not [word for word in words if word.startswith("-0.") and not word.strip("-0.]")], numbers


def test_constant_row(truenorm):
    text = truenorm.ok("explain", 2, 2, 2, "--gamma", 3, "--beta", "0.5")
    assert "(x - mean)/0 is 0/0: not defined." in text
    assert "eps saves it: 0/sqrt(0 + 1e-5) = 0" in text
    assert "gamma*0 + beta = beta, exactly" in text
    assert "[0.500, 0.500, 0.500]" in text
    # A sum of ten times 0.1 is not 1; the row is constant all the same.
    assert "eps saves it" in truenorm.ok("explain", *["0.1"] * 10)
    assert "eps saves it" in truenorm.ok("explain", 5)
    without = truenorm.ok("explain", 2, 2, "--eps", 0)
    assert "with eps = 0 nothing saves it" in without and "[NaN, NaN]" in without


def test_json(truenorm):
    report = json.loads(truenorm.ok("explain", 3, 1, 5, 7, "--gamma", 2, "--beta", 1, "--json"))
    assert report["by_hand"]["mean"] == 4 and report["by_hand"]["variance"] == 5
    assert report["by_hand"]["normalized"] == [-0.447, -1.342, 0.447, 1.342]
    assert report["by_hand"]["y"] == pytest.approx([0.106, -1.684, 1.894, 3.684], abs=1e-12)
    assert report["computed"]["mean"] == 4 and report["computed"]["variance"] == 5
    # (x - 4)/sqrt(5.00001) to the bound of float64, 16 ulp of a number near 1.
    exact = [v / 5.00001**0.5 for v in (-1, -3, 1, 3)]
    assert report["computed"]["normalized"] == pytest.approx(exact, rel=20 * 2**-52)
    assert report["eps"] == 1e-5 and report["gamma"] == [2] * 4


def test_eps_is_taken_as_given(truenorm):
    report = json.loads(truenorm.ok("explain", 1, 2, "--eps", "0.75", "--json"))
    assert report["computed"]["normalized"] == [-0.5, 0.5]  # sqrt(0.25 + 0.75) = 1
    assert "computed (eps = 0.75)" in truenorm.ok("explain", 1, 2, "--eps", ".75")


def test_numbers_of_any_size(truenorm):
    assert "[1.2247, -1.2247, 0.0000]" in truenorm.ok("explain", "1e200", "-1e200", "3")
    assert "Mean:                          1.5000e-30" in truenorm.ok("explain", "1e-30", "2e-30")
    assert "1000000.5000" in truenorm.ok("explain", "1e6", "1000001")


@pytest.mark.parametrize("size", ["e308", "e200", "e-200", "e-310"])
def test_variances_beyond_float64_have_a_standard_deviation(truenorm, size):
    """That of -1 and 1, in other units, in the text, the picture and JSON."""
    text = truenorm.ok("explain", f"-1{size}", f"1{size}", "--eps", 0, "--gamma", 3, "--histogram")
    assert f"Standard deviation:            1.0000{size}" in text and f"before: mean 0.000, sd 1.000{size}" in text
    assert f"Variance:                      (1.0000{size})^2" in text and "Normalized standard deviation: 1.000000" in text
    assert "mean 0.000, sd 3.000" in text
    report = json.loads(truenorm.ok("explain", f"-1{size}", f"1{size}", "--eps", 0, "--json"))
    assert report["computed"]["sd"] == float(f"1{size}") and report["computed"]["normalized"] == [-1, 1]


def test_large_outputs_have_a_standard_deviation(truenorm):
    report = json.loads(truenorm.ok("explain", 3, 1, 5, 7, "--gamma", "1e200", "--json"))
    for part in ("computed", "by_hand"):
        assert report[part]["y_sd"] == pytest.approx(1e200, rel=1e-3)


def test_numbers_that_are_not_finite_are_strings_in_json(truenorm):
    report = json.loads(truenorm.ok("explain", "1e200", "-1e200", "--json"), parse_constant=pytest.fail)
    assert report["by_hand"]["variance"] == "Infinity" and report["computed"]["variance"] == "Infinity"
    report = json.loads(truenorm.ok("explain", 2, 2, "--eps", 0, "--json"), parse_constant=pytest.fail)
    assert report["computed"]["y"] == ["NaN", "NaN"]


def test_many_features_are_cut_in_the_middle(truenorm):
    text = truenorm.ok("explain", *range(1, 101))
    assert "x = [1, 2, 3, 4, 5, 6, 7, 8, 9, ..., 99, 100]" in text
    assert "5050/100 = 50.5000" in text
    assert max(map(len, text.splitlines())) <= 100


def test_histogram(truenorm):
    text = truenorm.ok("explain", 3, 1, 5, 7, "--histogram")
    assert "before: mean 4.000, sd 2.236" in text and "after: mean 0.000, sd 1.000" in text
    assert "┆" in text and "█" in text
    plain = truenorm.ok("explain", 3, 1, 5, 7, "--histogram", env={"LC_ALL": "C"})
    assert plain.isascii() and ":" in plain and "#" in plain


def test_row_of_a_file(truenorm, data):
    file = data / "worked_batch" / "x.npy"
    report = json.loads(truenorm.ok("explain", "--file", file, "--row", 1, "--json"))
    assert report["d"] == 8 and round(report["computed"]["mean"], 3) == 0.35
    assert "0 to 7" in truenorm.bad("explain", "--file", file, "--row", 8)


@pytest.mark.parametrize(("shape", "words"), [((6, 0), "(6, 0), rows of no features"), ((0, 6), "(0, 6), no rows")])
def test_files_of_nothing(truenorm, tmp_path, shape, words):
    np.save(tmp_path / "x.npy", np.ones(shape, np.float32))
    assert words in truenorm.bad("explain", "--file", "x.npy")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["3", "1", "x"], ["x[2]", "'x'", "not a number"]),
        (["3", "1,,2"], ["x[2]", "''", "not a number", "expected"]),
        (["3", "1,"], ["x[2]", "''"]),
        (["-.5x", "1"], ["-.5x"]),
        (["-5x", "1"], ["x[0]", "'-5x'"]),
        (["nan", "1"], ["x[0]", "NaN", "finite"]),
        (["1", "-inf"], ["x[1]", "-Inf", "finite"]),
        (["1e999", "1"], ["'1e999'", "largest float64"]),
        (["0x10"], ["'0x10'"]),
        ([], ["truenorm explain 3 1 5 7"]),
        (["1", "2", "--eps", "-1"], ["--eps", "-1", "0 or larger"]),
        (["1", "2", "--eps", "nan"], ["--eps", "nan"]),
        (["1", "2", "--eps", "inf"], ["--eps", "inf"]),
        (["1", "2", "--eps", "small"], ["--eps", "'small'", "expected a finite number, 0 or larger"]),
        (["1", "2", "--gamma", "1,2,3"], ["--gamma", "3 values", "2 features"]),
        (["1", "2", "--gamma", "1,b"], ["--gamma[1]", "'b'"]),
        (["1", "2", "--beta", "inf"], ["--beta", "Inf"]),
        (["1", "2", "--beta", "missing.npy"], ["--beta: missing.npy", "No such file"]),
        (["1", "2", "--gamma", "1 2 3"], ["--gamma", "3 values", "2 features"]),
        (["1", "2", "--beta"], ["--beta"]),
        (["1", "2", "--gamma", ""], ["--gamma", "''"]),
        (["1", "2", "--gama", "1"], ["--gama"]),
        (["1", "--file", "x.npy"], ["--file"]),
        (["--file", "missing.npy"], ["missing.npy"]),
        (["1", "--row", "1"], ["--row", "--file"]),
        (["1", "2", "--axis", "4"], ["--axis", "4", "--file"]),
        (["1", "2", "--axis", "-1"], ["--axis", "-1", "--file"]),
        (["1", "2", "--histogram", "--json"], ["--histogram", "--json"]),
    ],
)
def test_bad_input(truenorm, arguments, words):
    line = truenorm.bad("explain", *arguments)
    assert line.startswith("truenorm explain: ")
    for word in words:
        assert word in line
