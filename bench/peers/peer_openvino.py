"""OpenVINO: MVN with eps inside the root, then gamma and beta, which its CPU plug-in fuses; tensors are kept."""

import numpy as np

from . import Kernel, Unsupported, python_worker

NAME = "OpenVINO"
PYTORCH = False


def command(build):
    return python_worker("openvino", "openvino")


def environment(threads):
    return {"OPENVINO_LOG_LEVEL": "0"}


def versions():
    import openvino

    return {"version": openvino.__version__.split("-")[0]}


def prepare(cell, inputs):
    import openvino as ov
    from openvino import opset13 as ops

    if cell.direction == "backward":
        raise Unsupported("inference only")
    if cell.variant == "saved":
        raise Unsupported("returns no statistics")
    if cell.dtype == "float64":
        raise Unsupported("computes float64 in float32")
    kind = {"float32": ov.Type.f32, "float16": ov.Type.f16, "bfloat16": ov.Type.bf16}[cell.dtype]
    x = ops.parameter([cell.rows, cell.d], kind, name="x")
    constant = lambda values: ops.convert(ops.constant(values.astype(np.float32)), kind.get_type_name())
    norm = ops.mvn(x, ops.constant(np.array([1], np.int64)), True, cell.eps, "inside_sqrt")
    norm = ops.add(ops.multiply(norm, constant(inputs.gamma)), constant(inputs.beta))
    core = ov.Core()
    precision = kind if kind in (ov.Type.f32, ov.Type.bf16) else ov.Type.f16
    compiled = core.compile_model(ov.Model([norm], [x]), "CPU", {
        "INFERENCE_NUM_THREADS": cell.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision})
    request = compiled.create_infer_request()
    y = np.zeros_like(inputs.x)

    def wrap(array):
        if cell.dtype == "bfloat16":
            return ov.Tensor(array.view(np.uint16), ov.Shape(array.shape), ov.Type.bf16)
        return ov.Tensor(array, shared_memory=True)

    tensors = wrap(inputs.x), wrap(y)
    request.set_input_tensor(tensors[0])
    request.set_output_tensor(tensors[1])

    def call(keep=(tensors, inputs)):
        request.infer()

    return Kernel(call, lambda: {"y": y})
