"""ONNX Runtime: the operator LayerNormalization of opset 17, input and output bound to memory that is kept."""

import numpy as np

from . import Kernel, Unsupported, python_worker

NAME = "ONNX Runtime"
PYTORCH = False


def command(build):
    return python_worker("onnxruntime", "onnx", "onnxruntime")


def environment(threads):
    return {}


def versions():
    import onnxruntime

    return {"version": onnxruntime.__version__}


def model(cell, inputs, outputs):
    import onnx
    from onnx import TensorProto, helper

    kind = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16}[cell.dtype]
    node = helper.make_node("LayerNormalization", ["x", "gamma", "beta"], outputs, axis=-1, epsilon=cell.eps)
    constants = [onnx.numpy_helper.from_array(getattr(inputs, name).astype(cell.dtype), name)
                 for name in ("gamma", "beta")]
    shape, one = [cell.rows, cell.d], [cell.rows, 1]
    infos = [helper.make_tensor_value_info(name, kind if name == "y" else TensorProto.FLOAT,
                                           shape if name == "y" else one) for name in outputs]
    graph = helper.make_graph([node], "norm", [helper.make_tensor_value_info("x", kind, shape)], infos, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def prepare(cell, inputs):
    import onnxruntime

    if cell.direction == "backward":
        raise Unsupported("inference only")
    if cell.dtype == "bfloat16":
        raise Unsupported("no kernel for bfloat16")
    outputs = ["y", "mean", "rstd"] if cell.variant == "saved" else ["y"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cell.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model(cell, inputs, outputs), options, providers=["CPUExecutionProvider"])
    arrays = {name: np.zeros((cell.rows, cell.d if name == "y" else 1), cell.dtype if name == "y" else np.float32)
              for name in outputs}
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, inputs.x.dtype, inputs.x.shape, inputs.x.ctypes.data)
    for name, array in arrays.items():
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    run = session.run_with_iobinding

    def call(keep=inputs):
        run(binding)

    return Kernel(call, lambda: {"y": arrays["y"]})
