"""Files that are damaged, empty, of another format or of another kind, and options that cannot be meant: one line each that
names the value and what was expected, and nothing is left."""

import gzip
import io
import os
import pickle
import tempfile

import numpy as np
import pytest
import torch


def write(path, content):
    path.write_bytes(content)


def bad_files(folder):
    """Name -> words that the complaint must have."""
    good = folder / "good.npy"
    np.save(good, np.ones((3, 4), np.float32))
    raw = good.read_bytes()

    def header(shape):
        """The file with another text as shape, the header as long as before."""
        content = raw.replace(b"(3, 4)", shape.encode())
        return content[:128].rstrip() + b" " * (127 - len(content[:128].rstrip())) + b"\n" + raw[128:]

    files = {
        "empty.npy": (b"", ["empty"]),
        "text.npy": (b"3 1 5 7\n", ["no .npy file"]),
        "short.npy": (raw[:7], ["ends inside"]),
        "header.npy": (raw[:50], ["ends inside"]),
        "truncated.npy": (raw[:-1], ["promises 48 bytes", "47"]),
        "longer.npy": (raw + b"x", ["promises 48 bytes", "49"]),
        "version.npy": (raw[:6] + b"\x04" + raw[7:], ["version 4"]),
        "lying.npy": (raw.replace(b"(3, 4)", b"(9, 4)"), ["promises 144 bytes", "48"]),
        "huge.npy": (header("(99999999999, 9999999999)"), ["(99999999999, 9999999999)", "fewer than 2^60 elements"]),
        "long_size.npy": (header("(3, 99999999999999999999)"), ["'99999999999999999999", "a size from 0 to 1152921504606846975"]),
        "negative.npy": (header("(3, -4)"), ["'-4), }'", "a size from 0"]),
        "fraction.npy": (header("(3, 4.5)"), ["'.5), }'", "',' or ')'"]),
        "other_key.npy": (raw.replace(b"'shape'", b"'shapf'"), ["the key 'shapf'", "descr, fortran_order and shape"]),
        "more_keys.npy": (header("(3, 4), 'order': 3"), ["the key 'order'", "descr, fortran_order and shape"]),
        "zero_key.npy": (raw.replace(b"'shape'", b"'sha\0e'"), ["the key 'sha e'", "descr, fortran_order and shape"]),
        "twice.npy": (header("(3, 4), 'descr': '<f4'"), ["the key 'descr' twice"]),
        "no_shape.npy": (raw.replace(b"'shape': (3, 4), ", b" " * 17), ["has no 'shape'", "descr, fortran_order and shape"]),
        "order.npy": (raw.replace(b"False", b"Maybe"), ["'Maybe, 'shape': (3, 4), ", "expected True or False"]),
        "list.npy": (header("[3, 4]"), ["'[3, 4], }'", "expected '('"]),
        "type.npy": (raw.replace(b"'<f4'", b"'<q4'"), ["'<q4'", "expected float64"]),
    }
    arrays = {
        "int.npy": (np.ones((3, 4), np.int32), ["'<i4'", "expected float64"]),
        "complex.npy": (np.ones((3, 4), np.complex64), ["'<c8'"]),
        "object.npy": (np.array([[1, "a"]], dtype=object), ["'|O'"]),
        "record.npy": (np.zeros(3, [("a", "<f4"), ("b", "<f4")]), ["records"]),
        "scalar.npy": (np.float32(3), ["shape ()"]),
    }
    for name, (content, _) in files.items():
        write(folder / name, content)
    for name, (array, _) in arrays.items():
        np.save(folder / name, array, allow_pickle=True)
    return {name: words for name, (_, words) in {**files, **arrays}.items()}


def other_formats(folder):
    """What people have their weights and activations in, and what the line must say."""
    weight = {"weight": torch.ones(4), "bias": torch.zeros(4)}
    torch.save(weight, folder / "zip.pt")
    torch.save(weight, folder / "old.pth", _use_new_zipfile_serialization=False)
    torch.save(weight, folder / "pytorch_model.bin")
    for protocol in (2, 4, 5):
        (folder / f"{protocol}.pkl").write_bytes(pickle.dumps(np.ones(4), protocol))
    (folder / "x.npy.gz").write_bytes(gzip.compress(b"x" * 99))
    (folder / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(99))
    (folder / "x.gguf").write_bytes(b"GGUF\x03" + bytes(99))
    return {name: ["gzip", "zcat"] if name.endswith("gz") else ["HDF5"] if name.endswith("h5") else ["GGUF"] if name.endswith("gguf")
            else ["pickle", "safetensors", "numpy.save"] for name in os.listdir(folder)}


def test_other_formats_are_named(truenorm, tmp_path):
    for name, words in other_formats(tmp_path).items():
        for command in (["apply", name, "-o", "y.npy"], ["stats", name], ["explain", "--file", name],
                        ["explain", "1", "2", "--gamma", name], ["explain", "1", "2", "--prefix", f"{name}:norm"]):
            line = truenorm.bad(*command)
            assert name in line and all(word in line for word in words), line
        with open(tmp_path / name, "rb") as file:
            line = truenorm.bad("apply", "-", "-o", "y.npy", stdin=file)
            assert "the standard input" in line and all(word in line for word in words), line
    assert not (tmp_path / "y.npy").exists()


def test_bad_files_are_named_and_leave_nothing(truenorm, tmp_path):
    cases = bad_files(tmp_path)
    cases["missing.npy"] = ["No such file"]
    (tmp_path / "folder.npy").mkdir()
    cases["folder.npy"] = ["folder"]
    before = sorted(os.listdir(tmp_path))
    for name, words in cases.items():
        for command in (
            ["apply", name, "-o", "y.npy"],
            ["stats", name],
            ["explain", "--file", name],
            ["explain", "1", "2", "--gamma", name],
        ):
            if name == "scalar.npy" and "--gamma" in command:
                continue  # one value is a fine gamma
            line = truenorm.bad(*command)
            assert name in line, line
            if "--gamma" not in command:
                assert all(word in line for word in words), line
        assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--eps", "-1"], ["eps", "-1"]),
        (["--gamma", "1,2,3"], ["--gamma", "3 values", "4 features"]),
        (["--gamma", "good.npy"], ["--gamma", "(3, 4)"]),
        (["--axis", "2"], ["--axis", "'2'", "-2 to 1"]),
        (["--axis", "last"], ["--axis", "'last'"]),
        (["--threads", "-1"], ["--threads", "'-1'"]),
        (["--threads", "1000000"], ["--threads"]),
        (["--out-dtype", "int8"], ["--out-dtype", "'int8'"]),
        (["--out-dtype", "float16"], ["--out-dtype: float16", "x of type float32", "expected float32"]),
        (["--save-stats", "y.npy"], ["y.npy", "is the output as well"]),
        (["--eps", "nan"], ["--eps", "nan"]),
        (["--eps", "inf"], ["--eps", "inf"]),
        (["--eps", "small"], ["--eps", "'small'", "a finite number, 0 or larger"]),
        (["--gamma", "wide"], ["--gamma", "'wide'", "a list of numbers or a file"]),
        (["--gamma", "missing.npy"], ["--gamma: missing.npy", "No such file"]),
        (["--prefix", "norm"], ["--prefix", "good.npy", "FILE:PREFIX"]),
        (["--memory", "much"], ["--memory", "'much' is no size", "200M"]),
        (["--memory", "1"], ["--memory", "'1' is too little", "from 116M"]),
        (["--memory", "9999T"], ["--memory", "'9999T' is too much"]),
        (["--gamma", "-", "--beta", "-"], ["--beta", "standard input", "--gamma already", "expected a file"]),
        (["--eps"], ["--eps: has no value", "expected one"]),
        (["--eps", "1", "--eps", "2"], ["--eps: is given more than once", "expected one value"]),
        (["--save-stats", "no/such/folder.npy"], ["no/such/folder.npy", "No such file"]),
    ],
)
def test_bad_options_leave_nothing(truenorm, tmp_path, arguments, words):
    np.save(tmp_path / "good.npy", np.ones((3, 4), np.float32))
    gamma = io.BytesIO()
    np.save(gamma, np.ones(4, np.float32))
    with tempfile.TemporaryFile() as file:
        file.write(gamma.getvalue())
        file.seek(0)
        line = truenorm.bad("apply", "good.npy", "-o", "y.npy", *arguments, stdin=file)
    assert all(word in line for word in words), line
    assert os.listdir(tmp_path) == ["good.npy"]
