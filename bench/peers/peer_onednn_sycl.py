"""oneDNN of PyPI, with SYCL: primitive, memory and arguments made once, outputs preallocated."""

import pathlib
import sys

from . import runner

NAME = "oneDNN (SYCL)"
PYTORCH = False


def command(build):
    return runner(build, "onednn_sycl_runner", "the Python packages onednn, onednn-devel and intel-opencl-rt")


def environment(threads):
    libraries = pathlib.Path(sys.prefix) / "lib"
    return {"LD_LIBRARY_PATH": str(libraries), "ONEAPI_DEVICE_SELECTOR": "opencl:cpu",
            "OCL_ICD_FILENAMES": str(libraries / "libintelocl.so"), "DPCPP_CPU_NUM_CUS": str(threads)}
