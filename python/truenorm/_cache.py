"""What layer_norm_forward keeps for layer_norm_backward, in the shape that textbooks give it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

from ._arrays import AnyArray


class LayerNormCache:
    """(x, x_norm, mu, var, gamma, eps): six entries by name, by index and by unpacking.

    Only x itself (not a copy: do not write to it before backward), gamma, eps and 16 bytes a row (24 for float64 x) are
    kept. x_norm, mu and var are computed from x each time they are asked for; mu and var are float64, with the
    normalized axes kept as 1. var is the biased variance, without eps.
    """

    __slots__ = ("_eps", "_gamma", "_owner", "_saved", "_x")

    def __init__(self, x: AnyArray, gamma: AnyArray, eps: float, saved: Any, owner: Any) -> None:
        self._x = x
        self._gamma = gamma
        self._eps = eps
        self._saved = saved
        self._owner = owner  # knows the kind of x and how it was normalized

    # To be read only: backward goes by what forward was given.
    @property
    def x(self) -> AnyArray:
        """x itself."""
        return self._x

    @property
    def gamma(self) -> AnyArray:
        """gamma as it was given."""
        return self._gamma

    @property
    def eps(self) -> float:
        """eps as it was given."""
        return self._eps

    @property
    def x_norm(self) -> AnyArray:
        """(x - mu) / sqrt(var + eps), made anew."""
        return self._owner.x_norm(self.x, self.eps)

    @property
    def mu(self) -> AnyArray:
        """The mean of each row, float64."""
        return self._owner.statistics(self.x, self.eps)[0]

    @property
    def var(self) -> AnyArray:
        """The biased variance of each row, float64."""
        return self._owner.statistics(self.x, self.eps)[1]

    @property
    def nbytes(self) -> int:
        """Bytes kept besides x and gamma."""
        return int(self._saved.nbytes)

    _NAMES = ("x", "x_norm", "mu", "var", "gamma", "eps")

    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Iterator[Any]:
        for name in self._NAMES:
            yield getattr(self, name)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        names = self._NAMES[index]
        if isinstance(names, tuple):
            return tuple(getattr(self, name) for name in names)
        return getattr(self, names)

    def __repr__(self) -> str:
        shape = tuple(self.x.shape)
        return f"LayerNormCache(x of shape {shape}, eps={self.eps}, {self.nbytes} bytes besides x and gamma)"
