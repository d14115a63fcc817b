import os

import numpy as np
import pytest

SEED = int(os.environ.get("TRUENORM_TEST_SEED", "20261130"))


@pytest.fixture
def rng(request):
    """Random numbers that differ from test to test; TRUENORM_TEST_SEED gives others."""
    name = request.node.nodeid
    print(f"TRUENORM_TEST_SEED={SEED}  # {name}")
    return np.random.default_rng([SEED, *name.encode()])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """What the library says it cannot do yet is an expected failure, not a pass."""
    try:
        return (yield)
    except NotImplementedError as error:
        if "not implemented" not in str(error).lower():
            raise
        pytest.xfail(str(error))
