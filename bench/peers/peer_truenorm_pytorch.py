"""truenorm.torch.layer_norm in place of torch.nn.functional.layer_norm, in the same conditions."""

from . import kept_memory, python_worker
from .peer_pytorch import prepare_caller

NAME = "truenorm.torch"
PYTORCH = True


def command(build):
    return python_worker("truenorm_pytorch", "torch", "truenorm")


def environment(threads):
    return kept_memory() | {"OMP_NUM_THREADS": str(threads), "TRUENORM_NUM_THREADS": str(threads), "TRUENORM_THREAD_WAIT": "100"}


def versions():
    import torch
    import truenorm

    return {"version": truenorm.__version__, "PyTorch": torch.__version__}


def prepare(cell, inputs):
    import torch
    import truenorm.torch

    torch.set_num_threads(cell.threads)
    return prepare_caller(cell, inputs, truenorm.torch.layer_norm)
