"""oneDNN of PyPI, with SYCL: primitive, memory and arguments made once, outputs preallocated.

Its run-time computes in threads of its own while the caller's waits busily: with one thread the process is bound to one
processor.
"""

import pathlib
import sys

from . import runner

NAME = "oneDNN (SYCL)"
PYTORCH = False
BOUND = True


def command(build):
    return runner(build, "onednn_sycl_runner", "the Python packages onednn, onednn-devel and intel-opencl-rt")


def environment(threads):
    libraries = pathlib.Path(sys.prefix) / "lib"
    return {"LD_LIBRARY_PATH": str(libraries), "ONEAPI_DEVICE_SELECTOR": "opencl:cpu",
            "OCL_ICD_FILENAMES": str(libraries / "libintelocl.so"), "DPCPP_CPU_NUM_CUS": str(threads)}
