"""PyTorch. It allocates its results on every call; glibc keeps the memory for it.

Forward without statistics is F.layer_norm in inference mode; with them native_layer_norm, which returns mean and rstd.
Backward calls the operator itself, without autograd.
"""

from . import Kernel, kept_memory, python_worker

NAME = "PyTorch"
PYTORCH = None


def command(build):
    return python_worker("pytorch", "torch")


def environment(threads):
    return kept_memory() | {"OMP_NUM_THREADS": str(threads)}


def versions():
    import torch

    return {"version": torch.__version__}


def tensor(array):
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("uint16")).view(torch.bfloat16)
    return torch.from_numpy(array)


def array(result):
    import ml_dtypes
    import torch

    if result.dtype == torch.bfloat16:
        return result.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return result.numpy()


def prepare(cell, inputs):
    import torch

    torch.set_num_threads(cell.threads)
    if cell.part == "pytorch":
        return prepare_caller(cell, inputs, torch.nn.functional.layer_norm)
    x, gamma, beta = tensor(inputs.x), tensor(inputs.gamma), tensor(inputs.beta)
    shape, eps, out = (cell.d,), cell.eps, {}
    if cell.direction == "forward":
        if cell.variant == "saved":
            def call():
                out.clear()  # the last result's memory serves the next
                out["y"], *out["stats"] = torch.native_layer_norm(x, shape, gamma, beta, eps)
        else:
            def call():
                out.clear()
                out["y"] = torch.nn.functional.layer_norm(x, shape, gamma, beta, eps)
        names = ("y",)
    else:
        dy = tensor(inputs.dy)
        _, mean, rstd = torch.native_layer_norm(x, shape, gamma, beta, eps)
        wanted = [True, cell.variant == "all", cell.variant == "all"]
        backward = torch.ops.aten.native_layer_norm_backward

        def call():
            out.clear()
            out["dx"], out["dgamma"], out["dbeta"] = backward(dy, x, shape, mean, rstd, gamma, beta, wanted)
        names = ("dx", "dgamma", "dbeta") if cell.variant == "all" else ("dx",)

    return Kernel(without_gradients(call), lambda: {name: array(out[name]) for name in names})


def without_gradients(call):
    import torch

    torch.set_grad_enabled(False)
    return call


def prepare_caller(cell, inputs, layer_norm):
    """What a caller of PyTorch writes: a call, or a call whose result is differentiated."""
    import torch

    x, gamma, beta = tensor(inputs.x), tensor(inputs.gamma), tensor(inputs.beta)
    shape, eps, out = (cell.d,), cell.eps, {}
    if cell.direction == "forward":
        def call():
            out.clear()
            out["y"] = layer_norm(x, shape, gamma, beta, eps)

        return Kernel(without_gradients(call), lambda: {"y": array(out["y"])})

    torch.set_grad_enabled(True)
    dy = tensor(inputs.dy)
    leaves = {"dx": x.requires_grad_(), "dgamma": gamma.requires_grad_(), "dbeta": beta.requires_grad_()}

    def call():
        out.clear()
        y = layer_norm(x, shape, gamma, beta, eps)
        gradients = torch.autograd.grad(y, tuple(leaves.values()), dy)
        out.update(zip(leaves, gradients))

    return Kernel(call, lambda: {name: array(out[name]) for name in leaves})
