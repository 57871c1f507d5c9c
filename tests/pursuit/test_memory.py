"""Peak memory of pursuits in processes of their own."""

import subprocess
import sys

import pytest

MEASURE = """
import resource, numpy as np, scipy.linalg, isopursuit as ip
def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ip.isometry_pursuit(np.eye(3))
before = peak()
rng = np.random.default_rng(0)
X = rng.normal(size=(64, 200_000))
X *= np.exp(0.5 * rng.normal(size=200_000)) / 8
found = ip.isometry_pursuit(X)
assert found.certificate.gap <= 1e-10, found.certificate
print((peak() - before) / X.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="its unit differs elsewhere")
@pytest.mark.long
def test_a_hundred_megabytes_take_less_than_four_times_as_much():
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 4


TENSOR = """
import resource, numpy as np, torch, isopursuit as ip
def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
torch.set_num_threads(1)
ip.isometry_pursuit(torch.randn(64, 5000), tol=1e-4)
x = torch.randn(64, 1_200_000)
x /= 8
before = peak()
ip.isometry_pursuit(x, tol=1e-4, memory=2**27)
print((peak() - before) / (x.numel() * x.element_size()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="its unit differs elsewhere")
@pytest.mark.long
@pytest.mark.needs("torch")
def test_three_hundred_megabytes_of_a_tensor_take_less_than_a_hundred_more():
    run = subprocess.run([sys.executable, "-c", TENSOR], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 1 / 3
