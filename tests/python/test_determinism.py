"""The same bits for a row wherever it stands, for any number of threads, from many threads at once."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import truenorm


@pytest.fixture
def process_threads():
    yield
    truenorm._core.set_num_threads(0)


def random_call(rng, rows=257, d=768, dtype=np.float32):
    x, dy = (rng.standard_normal((rows, d)).astype(dtype) for _ in range(2))
    gamma, beta = (rng.standard_normal(d).astype(dtype) for _ in range(2))
    return x, gamma, beta, dy


def everything(x, gamma, beta, dy, **how):
    y, cache = truenorm.layer_norm_forward(x, gamma, beta, **how)
    return (y, cache.mu, cache.var, *truenorm.layer_norm_backward(dy, cache))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_threads_change_nothing(dtype, rng, process_threads):
    arguments = random_call(rng, dtype=dtype)
    expected = everything(*arguments, num_threads=1)
    for threads in (2, 3, 8):
        for a, b in zip(everything(*arguments, num_threads=threads), expected):
            assert np.array_equal(a, b)
        truenorm.set_num_threads(threads)
        assert truenorm.get_num_threads() == threads
        for a, b in zip(everything(*arguments), expected):
            assert np.array_equal(a, b)


def test_a_row_alone_and_in_a_batch(rng):
    x, gamma, beta, dy = random_call(rng, rows=600, d=96)
    y, cache = truenorm.layer_norm_forward(x, gamma, beta)
    dx, _, _ = truenorm.layer_norm_backward(dy, cache)
    for rows in (slice(17, 18), slice(599, 600), slice(3, 259), slice(0, 255)):
        part, part_cache = truenorm.layer_norm_forward(x[rows], gamma, beta)
        assert np.array_equal(part, y[rows])
        assert np.array_equal(truenorm.layer_norm_backward(dy[rows], part_cache)[0], dx[rows])


def test_many_callers_at_once(rng):
    calls = [random_call(rng, rows=64, d=128 + 16 * i, dtype=t) for i in range(4) for t in (np.float32, np.float16)]
    calls.append((random_call(rng, dtype=np.float16)[0], None, None, random_call(rng, dtype=np.float16)[3]))
    expected = [everything(*c) for c in calls]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for found, true in zip(pool.map(lambda c: everything(*c, num_threads=2), calls), expected):
                assert all(a is b is None or np.array_equal(a, b) for a, b in zip(found, true))


def test_the_interpreter_is_free_during_a_call(rng):
    """While one thread computes, another one runs Python. On a busy machine it may have to wait for its turn."""
    x = rng.standard_normal((20000, 768)).astype(np.float32)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(10):
            steps = 0
            done = pool.submit(lambda: truenorm.layer_norm(x, num_threads=1))
            while not done.done():
                steps += 1
            if steps > 1000:
                return
    pytest.fail(f"only {steps} steps during a call")


def test_repeated_calls_with_tiny_rows():
    x, dy = np.zeros((1, 4), np.float32), -np.ones((1, 4), np.float32)
    for _ in range(10):
        _, cache = truenorm.layer_norm_forward(x, np.ones(4, np.float32))
        assert not truenorm.layer_norm_backward(dy, cache)[1].any()


PROGRAM = """
import hashlib, numpy as np, truenorm
rng = np.random.default_rng(7)
digest = hashlib.sha256()
for dtype in (np.float32, np.float64, np.float16):
    for shape in ((5, 33), (64, 768), (3, 4099)):
        x, dy = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
        gamma = rng.standard_normal(shape[-1]).astype(dtype)
        y, cache = truenorm.layer_norm_forward(x, gamma, gamma)
        for array in (y, *truenorm.layer_norm_backward(dy, cache)):
            digest.update(array.tobytes())
print(truenorm.get_isa(), truenorm.get_num_threads(), digest.hexdigest())
"""


def run(program, **variables):
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_every_instruction_set_gives_the_same_bits():
    names = truenorm._core.isa_names()
    assert truenorm.get_isa() == names[0] or "TRUENORM_ISA" in os.environ
    results = {name: run(PROGRAM, TRUENORM_ISA=name) for name in names}
    assert all(found[0] == name for name, found in results.items())
    assert len({found[2] for found in results.values()}) == 1, results


def test_environment_sets_the_number_of_threads():
    assert run(PROGRAM, TRUENORM_NUM_THREADS="3")[1] == "3"


def test_unknown_instruction_set_is_an_error():
    program = """
import numpy as np, truenorm
for call in (truenorm.get_isa, lambda: truenorm.layer_norm(np.ones((2, 3)))):
    try:
        call()
        print("passed")
    except ValueError as error:
        print("refused" if "no_such_level" in str(error) else error)
"""
    assert run(program, TRUENORM_ISA="no_such_level") == ["refused", "refused"]


def test_threads_that_still_compute_at_the_end():
    """Daemon threads come back from the library when the interpreter is going down: they must not take it along."""
    program = """
import threading, time, numpy as np, truenorm
x = np.ones((2000, 768), np.float32)
def compute():
    while True:
        truenorm.layer_norm(x, num_threads=2)
        truenorm.layer_norm_forward(x)
for _ in range(3):
    threading.Thread(target=compute, daemon=True).start()
time.sleep(0.2)
print("done")
"""
    for _ in range(3):
        assert run(program) == ["done"]


def test_after_fork(rng):
    """A child process has its own threads."""
    x = rng.standard_normal((512, 768)).astype(np.float32)
    y = truenorm.layer_norm(x, num_threads=4)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(truenorm.layer_norm(x, num_threads=4), y) else 1)
    assert os.waitpid(child, 0)[1] == 0
