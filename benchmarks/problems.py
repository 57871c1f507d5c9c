"""The problems that are timed, and the peers."""

import faulthandler
import resource
from multiprocessing import Pipe, get_context

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

import isopursuit as ip
from isopursuit.data import load_iris, load_wine


def gaussian(D, P, seed=0):
    return ip.symmetric_normalize(np.random.default_rng(seed).normal(size=(D, P)) / np.sqrt(D))


def table(loader):
    values = loader().data
    values = values[:, values.std(axis=0) > 0]
    X = ((values - values.mean(axis=0)) / values.std(axis=0)).T
    return ip.symmetric_normalize(X / np.median(np.linalg.norm(X, axis=0)))


PROBLEMS = {
    "iris 4x75": lambda: ip.symmetric_normalize(load_iris().replicate(0)),
    "wine 6x89": lambda: ip.symmetric_normalize(load_wine().replicate(0, D=6)),
    "gauss 13x178": lambda: gaussian(13, 178),
    "gauss 2x756": lambda: gaussian(2, 756),
    "breast cancer 30x569": lambda: table(load_breast_cancer),
    "gauss 16x1000": lambda: gaussian(16, 1000),
    "digits 61x1797": lambda: table(load_digits),
}


LIMIT = 120  # seconds after which a peer is stopped and counted as that
MEMORY = 16 * 2**30  # bytes a peer may take


def conic(X, **options):
    from paper.methods import conic as paper_program  # not needed by before_after.py, whose other build may be older

    return paper_program(X, **options)[0]


PEERS = {"SCS": {"solver": "SCS", "eps": 1e-12}}  # the paper's solver


def in_child(function, *arguments, **options):
    """Run in a forked process that is killed after LIMIT seconds; returns its value, or None if it gave none."""
    receiver, sender = Pipe(duplex=False)

    def work():
        faulthandler.disable()  # a solver that dies for lack of memory is a result here
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sender.send(function(*arguments, **options))

    process = get_context("fork").Process(target=work)
    process.start()
    sender.close()
    answer = None
    try:
        if receiver.poll(LIMIT):
            answer = receiver.recv()
    except EOFError:
        pass
    process.kill()
    process.join()
    return answer
