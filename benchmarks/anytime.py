"""What is known when: loss and bound of `select` against time, beside pivoted QR, maxvol and greedy DPP.

    python -m benchmarks.anytime [--seconds 20] [--write] [--held-out] [problem ...]

`select` runs with its default arguments but for the limit; its callback records every improvement. Peers take
milliseconds and then stop. Ours must be at least as good as each peer within 10 times its time, or within 50 ms if that
is longer: the program exits with 1 where it is not. Times that are compared are processor time, the best of five runs,
of ours (all its threads) as of the peers, on one BLAS thread. With --write the table
and the picture of docs/speed.md are written; with --held-out other problems are tried (of
these only diabetes and heavy tails were not looked at while the first answers were written).
"""

import argparse
import os
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from threadpoolctl import threadpool_limits

import isopursuit as ip
from benchmarks import pivots
from benchmarks.pages import save_table
from docs.pictures.style import BLUE, GREEN, GREY, ORANGE, picture
from isopursuit._core.linalg import unit_columns
from isopursuit._core.text import loss_text
from isopursuit.data import load_wine
from isopursuit.show._style import maybe_log

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "anytime.svg"
PEERS = {"pivoted QR": pivots.pivoted_qr, "greedy DPP": pivots.greedy_dpp, "maxvol": pivots.maxvol}
PEER_COLOURS = ORANGE, GREEN, GREY
RUNS = 5  # whose best time counts: other work on the machine makes the others longer
TIMES, LEAST = 10, 0.05  # ours must be as good within so many times a peer's time, or within so many seconds


def standardized(values):
    """Rows of a table as columns, features with mean 0 and variance 1, the median length 1."""
    values = values[:, values.std(axis=0) > 0]
    X = ((values - values.mean(axis=0)) / values.std(axis=0)).T
    return X / np.median(np.linalg.norm(X, axis=0))


def gaussian(D, P, spread=0.3, seed=0):
    """Gaussian columns whose log-lengths have this standard deviation."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(D, P)) / np.sqrt(D)
    return X * np.exp(spread * rng.normal(size=P)) if spread else unit_columns(X)


PROBLEMS = {
    "Wine, 13 of 178": lambda: (load_wine().matrix(), None),
    "breast cancer at median unit, 30 of 569": lambda: (standardized(load_breast_cancer().data), None),
    "unit-length Gaussian columns, 10 of 200": lambda: (gaussian(10, 200, 0), None),
    "digits at median unit, 61 of 1,797": lambda: (standardized(load_digits().data), None),
    "Gaussian columns of spread lengths, 64 of 20,000": lambda: (gaussian(64, 20_000), None),
}
HELD_OUT = {
    "Wine at median unit, 13 of 178": lambda: (standardized(load_wine().values), None),
    "diabetes, 10 of 442": lambda: (standardized(load_diabetes().data), None),
    "digits at median unit, 16 of 1,797": lambda: (standardized(load_digits().data), 16),
    "unit-length Gaussian columns, 20 of 1,000": lambda: (gaussian(20, 1000, 0, 3), None),
    "Gaussian columns of spread lengths, 20 of 20,000": lambda: (gaussian(64, 20_000, 0.3, 5), 20),
    "heavy tails, 24 of 3,000": lambda: (np.random.default_rng(6).standard_t(3, size=(24, 3000)) / 8, None),
}


def peers_of(X, k):
    """Seconds and loss of each peer."""
    found = {}
    with threadpool_limits(1):
        for name, method in PEERS.items():
            runs = []
            for _ in range(RUNS):
                began = time.process_time()
                picked = method(X, k)
                runs.append(time.process_time() - began)
            found[name] = (min(runs), ip.isometry_loss(X[:, picked]))
    return found


def ours_of(X, k, seconds, until=np.inf):
    """Processor seconds, loss, bound and seconds at every improvement and about ten times a second, the answer, and the
    seconds it took; the search is stopped after `until` processor seconds.
    """
    history = []
    began, cpu = time.perf_counter(), time.process_time()

    def record(now):
        used, elapsed = time.process_time() - cpu, time.perf_counter() - began
        history.append((used, now.incumbent, now.lower_bound, elapsed))
        return used > until

    picked = ip.select(X, k, time_limit=seconds, callback=record)
    took = time.perf_counter() - began
    history.append((time.process_time() - cpu, picked.loss, picked.search.lower_bound, took))
    return history, picked, took


def at(history, seconds):
    """Our loss after so many processor seconds."""
    return min((loss for when, loss, *_ in history if when <= seconds), default=np.inf)


def since(runs, loss):
    """Processor seconds after which ours was as good as this loss, or infinity."""
    goal = loss * (1 + 1e-9)
    return min((when for history in runs for when, found, *_ in history if found <= goal), default=np.inf)


def row_of(name, others, runs, picked, took):
    """The problem's row of the table."""
    peers = [f"{loss_text(loss)} in {milliseconds(seconds)} ms" for seconds, loss in others.values()]
    reached = max(since(runs, loss) for _, loss in others.values())
    after = milliseconds(reached) if np.isfinite(reached) else "never"
    end = f"{loss_text(picked.loss)} ({took:.1f} s)"
    return [name, *peers, after, loss_text(at(runs[0], 1.0)), end, picked.verdict]


def milliseconds(seconds):
    return f"{1000 * seconds:.0f}" if seconds >= 0.001 else f"{1000 * seconds:.2g}"


def late(others, runs):
    """The peers whose loss ours does not reach in the allowed time."""
    return [peer for peer, (seconds, loss) in others.items() if since(runs, loss) > max(TIMES * seconds, LEAST)]


def draw(results):
    """Loss and bound against processor time, a panel for each problem, then the legend; peers are points."""
    with picture(PICTURE, 5.5, 8, rows=-(-(len(results) + 1) // 2), columns=2) as axes:
        *panels, legend = axes.flat[: len(results) + 1]
        for ax, (name, (others, (history, *_), _, _)) in zip(panels, results.items(), strict=True):
            when, loss, bound, _ = np.array(history).T
            changed = np.append(True, (np.diff(loss) != 0) | (np.diff(bound) > 1e-3 * bound[1:]))
            changed[-1] = True
            ax.step(when[changed], loss[changed], where="post", color=BLUE, label="select")
            ax.step(when[changed], bound[changed], ":", where="post", color=BLUE, label="its lower bound")
            for style, colour, (peer, (seconds, value)) in zip("ovs", PEER_COLOURS, others.items(), strict=True):
                ax.plot(seconds, value, style, color=colour, label=peer)
            ax.set_xscale("log")
            maybe_log(ax, np.append(loss, bound))
            ax.set_title(textwrap.fill(name, 26), fontsize=10)
        for ax in axes.flat[len(results) :]:
            ax.set_axis_off()
        axes.flat[0].figure.supxlabel("seconds of processor time")
        axes.flat[0].figure.supylabel("loss")
        legend.legend(*panels[0].get_legend_handles_labels(), loc="center")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", help="only problems whose name begins like this")
    parser.add_argument("--seconds", type=float, default=20.0, help="the time limit of select")
    parser.add_argument("--write", action="store_true", help="the table and the picture of docs/speed.md")
    parser.add_argument("--held-out", action="store_true", help="other problems")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}\n")
    lines, results, missed = [], {}, []
    for name, make in (HELD_OUT if asked.held_out else PROBLEMS).items():
        if asked.problems and not any(name.startswith(start) for start in asked.problems):
            continue
        X, k = make()
        others, (history, picked, took) = peers_of(X, k or len(X)), ours_of(X, k, asked.seconds)
        allowed = max(LEAST, TIMES * max(seconds for seconds, _ in others.values()))
        early = [ours_of(X, k, asked.seconds, allowed)[0] for _ in range(RUNS - 1)]
        results[name] = (others, [history, *early], picked, took)
        lines.append(row_of(name, *results[name]))
        missed += late(others, [history, *early])
        print(" | ".join(lines[-1]), flush=True)
    if asked.write:
        ours = ("select is as good after, ms", "after 1 s", "at the end", "verdict")
        save_table("anytime", ["problem", *PEERS, *ours], lines)
        draw(results)
    print(f"\nNot reached in time: {', '.join(missed) or 'none'}.")
    sys.exit(len(missed) > 0)


if __name__ == "__main__":
    main()
