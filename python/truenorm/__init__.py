"""truenorm: layer normalization, right to the last place and bitwise the same everywhere.

    y = gamma * (x - mean) / sqrt(var + eps) + beta

for NumPy, PyTorch, JAX and other CPU arrays. ``truenorm.torch`` has drop-in replacements for PyTorch's layer norm,
``truenorm.onnx`` for ONNX's, ``truenorm.plot`` the pictures.
"""

from . import _core
from ._cache import LayerNormCache
from ._layer_norm import layer_norm, layer_norm_backward, layer_norm_forward
from ._process import get_isa, get_num_threads, get_thread_wait, set_num_threads, set_thread_wait

__version__: str = _core.version()
spec_version: int = _core.spec_version()

__all__ = [
    "LayerNormCache",
    "get_isa",
    "get_num_threads",
    "get_thread_wait",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_forward",
    "set_num_threads",
    "set_thread_wait",
    "spec_version",
]
