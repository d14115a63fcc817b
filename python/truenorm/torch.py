"""Drop-in replacements for PyTorch's layer norm.

    from truenorm.torch import layer_norm, LayerNorm, replace_layer_norms

``layer_norm`` has the signature of ``torch.nn.functional.layer_norm``; ``LayerNorm`` is a ``torch.nn.LayerNorm`` that
computes with truenorm; ``replace_layer_norms(model)`` swaps the modules of a model. Gradients of any order, torch.func,
torch.compile and torch.export work as with PyTorch's own. Tensors on other devices than the CPU go to PyTorch's norm,
with one warning.

Under forward-mode differentiation (torch.func.jvp, jacfwd) and torch.func.functionalize the values come from PyTorch's own
operations in float64, rounded once: right, but not the library's bits.
"""

from __future__ import annotations

import fnmatch
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized
from torch.overrides import handle_torch_function, has_torch_function

from . import _torch_autograd, _torch_kernels
from ._arrays import Names, shown
from ._compute import epsilon

__all__ = ["LayerNorm", "layer_norm", "replace_layer_norms", "restore_layer_norms"]


_NAMES = Names("input", "weight", "bias", "eps")


def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """As torch.nn.functional.layer_norm, with truenorm's accuracy and bits.

    weight and bias have the type of input, or float32 where input is float16 or bfloat16; the result has the type of
    input, under autocast too. The gradients of weight and bias are accumulated in full and rounded once.
    """
    if has_torch_function((input, weight, bias)):
        result: Tensor = handle_torch_function(
            layer_norm, (input, weight, bias), input, normalized_shape, weight=weight, bias=bias, eps=eps
        )
        return result
    if not torch.compiler.is_compiling():
        try:
            y = _torch_autograd.direct(input, normalized_shape, weight, bias, eps)
        except AttributeError:
            _refuse_non_tensors(input, weight, bias)
            raise
        if y is not None:
            return y
    return _checked(input, normalized_shape, weight, bias, eps)


def _refuse_non_tensors(input: Any, weight: Any, bias: Any) -> None:
    for name, value in (("input", input), ("weight", weight), ("bias", bias)):
        if not isinstance(value, Tensor) and (value is not None or name == "input"):
            raise TypeError(f"{name} is of type {type(value).__name__}; expected a PyTorch tensor")


def _checked(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Any call that has no shorter way, or that is wrong."""
    _refuse_non_tensors(input, weight, bias)
    if input.is_nested:
        return _elsewhere(input, normalized_shape, weight, bias, eps, "nested tensors")
    shape = _shape_of(normalized_shape)
    first = input.dim() - len(shape)
    if not shape or first < 0 or input.shape[first:] != shape:
        raise ValueError(f"normalized_shape {shape} is not how the shape of input ends: {tuple(input.shape)}")
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != shape:
            raise ValueError(f"{name} has shape {tuple(parameter.shape)}; expected normalized_shape, {shape}")
    eps = epsilon(eps)
    if input.device.type not in ("cpu", "meta"):
        return _elsewhere(input, shape, weight, bias, eps, f"tensors on {input.device}")
    _torch_kernels.check(input, weight, bias, _NAMES)
    if not torch.compiler.is_compiling() and _torch_autograd.are_plain(input, weight, bias):
        for name, tensor in zip(_NAMES, (input, weight, bias)):
            if tensor is not None and tensor.data_ptr() == 0:
                _torch_kernels.KIND.read(tensor, name)  # says so if its storage was freed
    return _torch_autograd.layer_norm(input, weight, bias, tuple(range(first, first + len(shape))), eps)


def _shape_of(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    several = isinstance(normalized_shape, Sequence)
    sizes: Any = normalized_shape if several else (normalized_shape,)
    try:
        return tuple(_size(n) for n in sizes)
    except TypeError:
        raise TypeError(
            f"normalized_shape is {shown(normalized_shape)}; expected an int or a sequence of ints"
        ) from None


def _size(n: Any) -> Any:
    if isinstance(n, bool):
        raise TypeError
    # The sizes of a traced shape stay what they are.
    return n if isinstance(n, (int, torch.SymInt)) else operator.index(n)


_warned = False


def _elsewhere(
    input: Tensor,
    shape: int | Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    what: str,
) -> Tensor:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"truenorm runs on the CPU; layer norms of {what} are left to PyTorch", stacklevel=4)
    return nn.functional.layer_norm(input, shape, weight, bias, eps)  # type: ignore[arg-type]


class LayerNorm(nn.LayerNorm):
    """torch.nn.LayerNorm, computed with truenorm: the same arguments, parameters and state_dict."""

    def forward(self, input: Tensor) -> Tensor:
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


Exclude = str | Iterable[str] | Callable[[str, nn.Module], bool] | None

_ORIGINAL = "_truenorm_original_class"
_NESTED = "_truenorm_original_use_nested_tensor"


def replace_layer_norms(
    model: nn.Module,
    *,
    exclude: Exclude = (),
    subclasses: bool = False,
) -> list[str]:
    """Makes every nn.LayerNorm in model a truenorm.torch.LayerNorm, in place, and returns their names.

    The module objects stay: parameters, hooks, optimizers and other references to them go on as before.

    exclude      names to leave alone, as written by model.named_modules(), with * and ? as wildcards; or a function of
                 name and module that says so; None, as no names: nothing is left alone
    subclasses   subclasses of nn.LayerNorm, which may compute something else, are left alone unless this is True;
                 norms with a parametrization (torch.nn.utils.parametrize) always are, since their class holds it

    restore_layer_norms(model) undoes it.
    """
    names = _modules(model)
    skipped = _excluded(names, exclude)
    changed = []
    for name, module in names:
        kind = type(module)
        if name in skipped or not isinstance(module, nn.LayerNorm) or isinstance(module, LayerNorm):
            continue
        if is_parametrized(module):
            continue
        if kind is nn.LayerNorm or subclasses:
            module.__dict__[_ORIGINAL] = kind
            module.__class__ = LayerNorm
            changed.append(name)
    for _, module in names:
        if isinstance(module, nn.TransformerEncoderLayer) and _ORIGINAL in _norms_of(module):
            if _keep_off_fused_path not in module._forward_pre_hooks.values():
                module.register_forward_pre_hook(_keep_off_fused_path)
    for _, module in names:
        # Nested tensors are for that path alone.
        if isinstance(module, nn.TransformerEncoder) and getattr(module, "use_nested_tensor", False):
            if any(_keep_off_fused_path in layer._forward_pre_hooks.values() for layer in module.layers):
                module.__dict__[_NESTED] = True
                module.use_nested_tensor = False
    return changed


def restore_layer_norms(model: nn.Module) -> list[str]:
    """Undoes replace_layer_norms and returns the names of the modules it changed back."""
    changed = []
    for name, module in _modules(model):
        if type(module) is LayerNorm and _ORIGINAL in module.__dict__:
            module.__class__ = module.__dict__.pop(_ORIGINAL)
            changed.append(name)
        if module.__dict__.pop(_NESTED, False):
            module.use_nested_tensor = True
        for key, hook in list(module._forward_pre_hooks.items()):
            if hook is _keep_off_fused_path:
                del module._forward_pre_hooks[key]
    return changed


def _modules(model: nn.Module) -> list[tuple[str, Any]]:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is {shown(model)}; expected a torch.nn.Module")
    return list(model.named_modules(remove_duplicate=True))


def _excluded(modules: list[tuple[str, nn.Module]], exclude: Exclude) -> set[str]:
    if callable(exclude) and not isinstance(exclude, nn.Module):
        return {name for name, module in modules if exclude(name, module)}
    patterns = () if exclude is None else (exclude,) if isinstance(exclude, str) else exclude
    if not isinstance(patterns, Iterable) or isinstance(patterns, (bytes, nn.Module)):
        raise TypeError(f"exclude is {shown(exclude)}; expected a name, several names, a function or None")
    skipped: set[str] = set()
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f"exclude holds {shown(pattern)}; expected names of modules")
        found = {name for name, _ in modules if fnmatch.fnmatchcase(name, pattern)}
        if not found:
            raise ValueError(f"exclude names {pattern!r}, but the model has no module of that name")
        skipped |= found
    return skipped


def _norms_of(layer: nn.Module) -> set[str]:
    return {key for child in layer.children() if isinstance(child, nn.LayerNorm) for key in child.__dict__}


def _keep_off_fused_path(module: nn.Module, args: Any) -> None:
    """A hook that does nothing: in inference nn.TransformerEncoderLayer calls a fused kernel, which has PyTorch's norm
    built in, unless the layer has a hook."""
