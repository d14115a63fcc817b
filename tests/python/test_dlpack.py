"""Arrays of libraries that nobody has heard of, which hand out their memory through DLPack."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import torch

import truenorm

bf16 = ml_dtypes.bfloat16


class Bare:
    """__dlpack__ and no more: neither a shape nor a type."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.device


class Old(Bare):
    """As before DLPack had versions."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class Described(Bare):
    """With a shape and a type, as most have them."""

    def __init__(self, array, device=(1, 0)):
        super().__init__(array, device)
        self.dtype, self.shape = array.dtype, array.shape


class Namespaced(Described):
    """The same with an array namespace, as the array API standard has it."""

    def __array_namespace__(self):
        class namespace:
            @staticmethod
            def from_dlpack(array):
                return Namespaced(np.from_dlpack(array))

        return namespace


KINDS = [Bare, Old, Described, Namespaced]


def tensor(x):
    return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if x.dtype == bf16 else torch.from_numpy(x)


def bits(x):
    return x.view(np.int16) if x.dtype == bf16 else x


@pytest.mark.parametrize("kind", KINDS)
def test_dlpack(kind, rng):
    x, gamma = rng.standard_normal((3, 8)).astype(np.float32), rng.standard_normal(8).astype(np.float32)
    y = truenorm.layer_norm(kind(x), kind(gamma), beta=1.0)
    assert isinstance(y, Namespaced if kind is Namespaced else np.ndarray)
    values = y.array if kind is Namespaced else y
    assert np.array_equal(values, truenorm.layer_norm(x, gamma, 1.0))
    y, cache = truenorm.layer_norm_forward(kind(x), kind(gamma))
    dx, dgamma, dbeta = truenorm.layer_norm_backward(kind(x), cache)
    assert dbeta is None and type(dx) is type(y)
    assert np.array_equal(truenorm.layer_norm(x, kind(gamma), kind(np.array(1.0))), values)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bf16], ids=lambda t: np.dtype(t).name)
def test_out(dtype, rng):
    x, out = rng.standard_normal((3, 8)).astype(dtype), np.empty((3, 8), dtype)
    own = Described(tensor(out))
    assert truenorm.layer_norm(Described(tensor(x)), out=own) is own
    assert np.array_equal(bits(out), bits(truenorm.layer_norm(x)))
    with pytest.raises(ValueError, match="out is read-only"):
        truenorm.layer_norm(Described(x.astype(np.float32)), out=Described(np.broadcast_to(np.float32(0), (3, 8))))


@pytest.mark.parametrize("kind", KINDS[:3])
def test_bfloat16(kind, rng):
    """NumPy reads no bfloat16 through DLPack; the type is the capsule's, whatever the object says of itself."""
    x, gamma = rng.standard_normal((3, 8)).astype(bf16), rng.standard_normal(8).astype(bf16)
    dy = rng.standard_normal((3, 8)).astype(bf16)
    expected, cache = truenorm.layer_norm_forward(x, gamma, 0.5)
    y, other = truenorm.layer_norm_forward(kind(tensor(x)), kind(tensor(gamma)), 0.5)
    assert y.dtype == bf16 and np.array_equal(bits(y), bits(expected))
    for found, true in zip(truenorm.layer_norm_backward(kind(tensor(dy)), other), truenorm.layer_norm_backward(dy, cache)):
        assert found.dtype == true.dtype and np.array_equal(bits(found), bits(true))
    strided = kind(tensor(x)[:, ::2])
    assert np.array_equal(bits(truenorm.layer_norm(strided)), bits(truenorm.layer_norm(x[:, ::2])))


def test_memory_of_bfloat16_stays():
    """It belongs to the capsule; nobody else holds it."""

    class Fleeting(Bare):
        def __dlpack__(self, **how):
            return torch.arange(8000).to(torch.bfloat16).reshape(8, 1000).__dlpack__(**how)

    _, cache = truenorm.layer_norm_forward(Fleeting(None))
    junk = [torch.zeros(8, 1000, dtype=torch.bfloat16) for _ in range(8)]
    expected = truenorm.layer_norm(torch.arange(8000).to(torch.bfloat16).reshape(8, 1000))
    assert np.array_equal(bits(cache.x_norm), expected.view(torch.int16).numpy()) and len(junk) == 8


class Broken(Bare):
    """One whose own methods fail."""

    def __init__(self, error):
        self.error = error

    def __dlpack__(self, **how):
        raise self.error

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("error", [RuntimeError, BufferError, TypeError, AttributeError, KeyError])
@pytest.mark.parametrize("which", ["x", "gamma"])
def test_errors_of_the_object_itself_go_on(which, error):
    """They are about the object, and nothing that truenorm could say better."""
    mine = error("the buffer is mapped on the device")
    arguments = {"x": np.ones((2, 3), np.float32), which: Broken(mine)}
    with pytest.raises(error) as caught:
        truenorm.layer_norm(**arguments)
    assert caught.value is mine


def test_what_is_no_capsule_is_refused():
    class NoCapsule(Bare):
        def __dlpack__(self, **how):
            return self.array

    class UsedUp(Bare):
        def __dlpack__(self, **how):
            capsule = self.array.__dlpack__()
            np.from_dlpack(Used(capsule))
            return capsule

    class Used:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **how):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    for value, found in ((NoCapsule(3), "int"), (NoCapsule(np.ones(3)), "ndarray"), (UsedUp(np.ones(3)), "PyCapsule")):
        with pytest.raises(TypeError, match=rf"x.__dlpack__\(\) is of type {found}; expected a capsule named dltensor"):
            truenorm.layer_norm(value)


def test_elsewhere_and_other_types_are_refused():
    with pytest.raises(TypeError, match="x is on DLPack device type 2"):
        truenorm.layer_norm(Bare(np.zeros((2, 3)), device=(2, 0)))
    with pytest.raises(TypeError, match=r"x.__dlpack_device__\(\) is 'cpu'; expected a device's type and number"):
        truenorm.layer_norm(Bare(np.zeros((2, 3)), device="cpu"))
    for dtype in (np.int64, np.uint8, np.bool_, np.complex64):
        with pytest.raises(TypeError, match=f"x has dtype {np.dtype(dtype).name}; expected float64"):
            truenorm.layer_norm(Bare(np.zeros((2, 3), dtype)))
    with pytest.raises(TypeError, match="x has dtype of DLPack type .*, 8 bits; expected float64"):
        truenorm.layer_norm(Bare(torch.zeros(2, 3).to(torch.float8_e4m3fn)))

    with pytest.raises(ValueError, match="x is a Bare that NumPy cannot read: array is too big"):
        truenorm.layer_norm(Bare(torch.ones(1).expand(4, 2**60)))

    class NoDevice:
        def __dlpack__(self, **how):
            return np.ones(3).__dlpack__(**how)

    with pytest.raises(TypeError, match="x is of type NoDevice, which has __dlpack__ but no __dlpack_device__"):
        truenorm.layer_norm(NoDevice())


def test_bfloat16_without_its_type():
    program = """
import sys
sys.modules["ml_dtypes"] = None
import torch, truenorm
class Bare:
    def __dlpack__(self, **how): return torch.ones(3, dtype=torch.bfloat16).__dlpack__(**how)
    def __dlpack_device__(self): return (1, 0)
try:
    truenorm.layer_norm(Bare())
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "x is bfloat16, which NumPy has with ml_dtypes only: pip install ml_dtypes\n", done.stderr
