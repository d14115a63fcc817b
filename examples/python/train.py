"""Two small language models trained on real text, and what their norms do.

    pip install torch matplotlib tqdm
    python examples/python/train.py [--steps 300] [--out norms]

A Transformer and a stack of state-space (SSM) blocks learn to guess the next character of the manual that comes with
Python, in float32 and in bfloat16, with truenorm's layer norm before each sub-layer. Pictures in the folder --out:

    loss.png      the loss of the four runs
    scale.png     the size of the activations through two dozen untrained blocks: no norm, norm before, norm after
    gradients.png what bfloat16 gradients of gamma and beta lose in PyTorch's own norm, beside truenorm's
"""

import argparse
import pydoc_data.topics
from pathlib import Path

import matplotlib
import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

import truenorm.torch
from truenorm.torch import LayerNorm

matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402

WIDTH, LENGTH, HEADS, STATES = 64, 64, 4, 16


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class StateSpace(nn.Module):
    """h[t] = a*h[t-1] + b*u[t], y[t] = c.h[t] + skip*u[t], for each feature on its own: a convolution with c.a^t*b."""

    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.linspace(-3, 3, STATES).repeat(WIDTH, 1))
        self.b, self.c = (nn.Parameter(torch.randn(WIDTH, STATES) / STATES**0.5) for _ in range(2))
        self.skip, self.mix = nn.Parameter(torch.ones(WIDTH)), nn.Linear(WIDTH, WIDTH)

    def forward(self, u):
        steps = torch.arange(u.shape[1])
        powers = torch.sigmoid(self.decay.float()).unsqueeze(-1) ** steps  # feature, state, time
        kernel = torch.einsum("fs,fst->ft", (self.b * self.c).float(), powers)
        lag = (steps[:, None] - steps).clamp(min=0)
        causal = torch.where(steps[:, None] >= steps, kernel[:, lag], 0.0).to(u.dtype)  # feature, to, from
        return self.mix(torch.einsum("fts,bsf->btf", causal, u) + self.skip * u)


class Feed(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


class Residual(nn.Module):
    """x + f(x), with the norm before f, after the sum, or nowhere."""

    def __init__(self, inner, place):
        super().__init__()
        self.inner, self.place = inner, place
        self.norm = nn.Identity() if place == "none" else LayerNorm(WIDTH)

    def forward(self, x):
        if self.place == "after":
            return self.norm(x + self.inner(x))
        return x + self.inner(self.norm(x))


def stack(kind, depth, place):
    mixers = {"Transformer": Attention, "SSM": StateSpace}
    parts = [Residual(part(), place) for _ in range(depth) for part in (mixers[kind], Feed)]
    return nn.Sequential(*parts)


class Model(nn.Module):
    def __init__(self, kind, symbols):
        super().__init__()
        self.embed, self.position = nn.Embedding(symbols, WIDTH), nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks, self.norm, self.head = stack(kind, 4, "before"), LayerNorm(WIDTH), nn.Linear(WIDTH, symbols)

    def forward(self, text):
        return self.head(self.norm(self.blocks(self.embed(text) + self.position)))


def manual():
    """The text as numbers, and how many different characters it has."""
    text = "\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    symbols = sorted(set(text))
    number = {symbol: i for i, symbol in enumerate(symbols)}
    return torch.tensor([number[symbol] for symbol in text]), len(symbols)


def train(kind, dtype, text, symbols, steps):
    torch.manual_seed(1)
    model = Model(kind, symbols).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = []
    progress = tqdm(range(steps), desc=f"{kind}, {str(dtype)[6:]}")
    for _ in progress:
        starts = torch.randint(len(text) - LENGTH - 1, (16,))
        window = torch.stack([text[s : s + LENGTH + 1] for s in starts.tolist()])
        loss = F.cross_entropy(model(window[:, :-1]).float().flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        progress.set_postfix(loss=f"{losses[-1]:.3f}")
    return losses


def scales(kind, place):
    """The root mean square of the activations behind each of 24 blocks."""
    torch.manual_seed(2)
    x = torch.randn(4, LENGTH, WIDTH)
    found = [x.pow(2).mean().sqrt().item()]
    with torch.no_grad():
        for i, part in enumerate(stack(kind, 24, place)):
            x = part(x)
            if i % 2:
                found.append(x.pow(2).mean().sqrt().item())
    return found


def lost(rows, norm):
    """The largest relative error of the bfloat16 gradients of gamma and beta over this many rows."""
    torch.manual_seed(3)
    x, dy = torch.randn(rows, WIDTH).bfloat16(), (1 + 0.1 * torch.randn(rows, WIDTH)).bfloat16()
    gamma, beta = (torch.full((WIDTH,), v, dtype=torch.bfloat16, requires_grad=True) for v in (1.0, 0.0))
    found = torch.autograd.grad(norm(x, (WIDTH,), gamma, beta), (gamma, beta), dy)
    exact = [t.detach().double().requires_grad_() for t in (gamma, beta)]
    y = F.layer_norm(x.double(), (WIDTH,), *exact)
    true = torch.autograd.grad(y, exact, dy.double())
    return [((f.double() - t).abs().max() / t.abs().max()).item() for f, t in zip(found, true)]


def draw(out, name, title, x_label, y_label, lines, log_x=False, log_y=True):
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for label, (x, y, style) in lines.items():
        axes.plot(x, y, style, label=label)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    if log_x:
        axes.set_xscale("log", base=2)
    if log_y:
        axes.set_yscale("log")
    axes.legend()
    figure.savefig(out / name, dpi=120)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("norms"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    text, symbols = manual()
    print(f"{len(text):,} characters, {symbols} different ones")

    losses = {}
    for kind in ("Transformer", "SSM"):
        for dtype, style in ((torch.float32, "-"), (torch.bfloat16, ":")):
            values = train(kind, dtype, text, symbols, options.steps)
            print(f"{kind} {str(dtype)[6:]}: loss {values[0]:.3f} at first, {sum(values[-10:]) / len(values[-10:]):.3f} at last")
            losses[f"{kind}, {str(dtype)[6:]}"] = (range(len(values)), values, style)
    draw(options.out, "loss.png", "Guessing the next character", "step", "loss", losses, log_y=False)

    sizes = {}
    for kind, style in (("Transformer", "-"), ("SSM", "--")):
        for place in ("none", "before", "after"):
            values = scales(kind, place)
            print(f"{kind}, norm {place}: size {values[0]:.3g} before, {values[-1]:.3g} behind 24 blocks")
            sizes[f"{kind}, norm: {place}"] = (range(len(values)), values, style)
    draw(options.out, "scale.png", "Activations through 24 blocks", "block", "root mean square", sizes)

    rows = [2**k for k in range(6, 15, 2)]
    errors = {}
    for name, norm, style in (("PyTorch", F.layer_norm, "-"), ("truenorm", truenorm.torch.layer_norm, "--")):
        pairs = [lost(n, norm) for n in rows]
        print(f"{name}: bfloat16 gradients over {rows[-1]} rows are off by {pairs[-1][0]:.2%} (gamma), {pairs[-1][1]:.2%} (beta)")
        for parameter, values in zip(("gamma", "beta"), zip(*pairs)):
            errors[f"{name}, gradient of {parameter}"] = (rows, values, style)
    draw(options.out, "gradients.png", "Error of bfloat16 gradients", "rows", "relative to the largest", errors, log_x=True)
    print("pictures in", options.out)


if __name__ == "__main__":
    main()
