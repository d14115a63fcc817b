"""truenorm.plot: the numbers in the picture are those of the token."""

import pathlib
import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")  # before pyplot is imported: no display is needed

import matplotlib.pyplot as plt  # noqa: E402

from truenorm.plot import before_after  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def panels(figure):
    """For each half: title, position of the dashed line, number of features counted by the bars."""
    result = []
    for axes in figure.axes:
        (line,) = axes.get_lines()
        assert line.get_linestyle() == "--"
        result.append((axes.get_title(), line.get_xdata()[0], sum(bar.get_height() for bar in axes.patches)))
    return result


def test_scattered_about_a_positive_mean_then_centred_with_unit_spread(tmp_path):
    token = np.load(DATA / "worked_batch" / "token.npy")
    before, after = panels(before_after(token, path=tmp_path / "picture.png"))
    assert before == ("before: mean 2.083, standard deviation 2.912", pytest.approx(token.mean(dtype=float)), 512)
    assert after == ("after: mean 0.000, standard deviation 1.000", pytest.approx(0, abs=1e-12), 512)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert plt.get_fignums() == []


def test_the_token_asked_for():
    x = np.load(DATA / "worked_batch" / "x.npy")
    for token in (5, (1, 1), -3):
        (_, mean, count), _ = panels(before_after(x, token=token))
        assert mean == pytest.approx(x[1, 1].mean(dtype=float)) and count == 8


def test_gamma_and_beta_or_a_given_y():
    x = np.array([3.0, 1.0, 5.0, 7.0])
    _, (title, mean, _) = panels(before_after(x, gamma=2, beta=np.ones(4)))
    assert title == "after: mean 1.000, standard deviation 2.000" and mean == pytest.approx(1)
    _, (_, mean, _) = panels(before_after(x, y=x + 1))
    assert mean == 5
    with pytest.raises(ValueError, match="either y or them"):
        before_after(x, x, gamma=2)
    with pytest.raises(ValueError, match="y has 3 features"):
        before_after(x, x[:3])


def test_bfloat16_tensor():
    torch = pytest.importorskip("torch")
    x = torch.tensor([[3.0, 1.0, 5.0, 7.0]], dtype=torch.bfloat16, requires_grad=True)
    (_, mean, _), _ = panels(before_after(x, gamma=torch.ones(4)))
    assert mean == 4


def test_axes_of_the_caller():
    figure, axes = plt.subplots(1, 2)
    assert before_after(np.arange(9.0), axes=axes) is figure
    with pytest.raises(ValueError, match="axes has 1"):
        before_after(np.arange(9.0), axes=axes[:1])


@pytest.mark.parametrize("token", [2, -3, (0, 0), (5,), 10**30])
def test_a_token_that_is_not_there(token):
    with pytest.raises(ValueError, match=r"not in x with shape \(2, 4\)"):
        before_after(np.ones((2, 4)), token=token)


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="NaN or Inf"):
        before_after(np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match=r"shape \(\)"):
        before_after(3.0)


@pytest.mark.parametrize("wrong,error,message", [
    (dict(token="a"), TypeError, "token is 'a'; expected an int, or one for each leading axis"),
    (dict(token=True), TypeError, "token is True"),
    (dict(token=(0.5,)), TypeError, r"token is \(0.5,\)"),
    (dict(bins=0), ValueError, "bins is 0; expected 1 to"),
    (dict(bins="auto"), TypeError, "bins is 'auto'; expected an int"),
    (dict(axes=3), TypeError, "axes is 3; expected two matplotlib axes"),
    (dict(axes=[1, 2]), TypeError, r"axes is \[1, 2\]; expected two matplotlib axes"),
    (dict(gamma="a"), TypeError, "gamma is 'a'; expected an array of real numbers"),
    (dict(beta=[[1], [1, 2]]), TypeError, r"beta is \[\[1\], \[1, 2\]\]"),
    (dict(x=None), TypeError, "x is None; expected an array of real numbers"),
    (dict(y="a"), TypeError, "y is 'a'"),
    (dict(eps=-1), ValueError, "eps is -1"),
], ids=str)
def test_wrong_arguments(wrong, error, message):
    with pytest.raises(error, match=message):
        before_after(**{"x": np.ones((2, 4)), **wrong})
    plt.close("all")


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        before_after(np.arange(4.0))
