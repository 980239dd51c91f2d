# SPDX-License-Identifier: Apache-2.0
"""One run from its seed to what the judge says."""
import shutil
import tempfile
import time
from pathlib import Path

from . import replay, standing
from .cases import Run
from .explain import Explainer
from .judge import Judge
from .report import Tally
from .volumes import Windows


def one_run(task):
    """task: a dict of name, seed, flows, seconds, daemon, settings, keep, explain. Returns
    (name, Tally, texts that explain)."""
    run = Run(task["name"], task["seed"], task["flows"], task["seconds"])
    folder = Path(task["keep"] or tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix="fidelity-")) if not task["keep"] else \
        folder / f"{run.name}-{run.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return run.name, *measured(run, folder, task)
    finally:
        if not task["keep"]:
            shutil.rmtree(folder)


def measured(run, folder, task):
    tally = Tally()
    topology, observations, out = (folder / name for name in
                                   ("topology.yaml", "observations.ndjson", "records.ndjson"))
    begin = time.monotonic()
    topology.write_text(run.fabric.yaml())
    with open(observations, "w", encoding="utf-8") as lines:
        tally.counts["observations"] = run.write(lines)
    generated = time.monotonic()
    replay.run(task["daemon"], topology if run.case.named else None, observations, out,
               task["settings"])
    replayed = time.monotonic()
    judge, windows = judged(run, replay.records(out))
    fill(tally, run, judge, windows)
    tally.seconds.update({"generate": generated - begin, "daemon": replayed - generated,
                          "judge": time.monotonic() - replayed})
    return tally, explained(run, observations, judge, task["explain"])


def judged(run, records):
    judge, windows = Judge(run.truth), Windows(run.truth, run.seconds)
    for record in records:
        judge.take(record)
        if record["schema"] == "fabrictrace.link.v1":
            windows.take(record)
    return judge, windows


def fill(tally, run, judge, windows):
    shares, settled, unsettled, _ = standing.judge(run.truth, judge.claims, run.seconds)
    tally.counts.update(judge.counts)
    tally.counts.update({"runs": 1, "links": windows.records, "links_phantom": windows.phantom})
    tally.shares, tally.unsettled = shares, unsettled
    for name, values in settled.items():
        tally.settled[name] = values
    tally.since_errors = judge.since_errors
    for moved, sums in windows.sums.items():
        tally.volumes[moved].update(sums)


def explained(run, observations, judge, count):
    """Texts of the first count findings, wrong ones first; a dict of verdicts chooses."""
    if not count:
        return []
    explainer = Explainer(run, observations)
    order = ("wrong", "no_samples", "unsprayed", "bad_shares", "wrong_share", "partial_wrong",
             "foreign", "outside", "single")
    chosen = sorted(judge.found, key=lambda f: order.index(f[0]))
    if count.get("only"):
        chosen = [f for f in chosen if f[0] in count["only"]]
    texts = []
    for verdict, record, moment, published in chosen[:count["most"]]:
        named = record["flow"]
        flow = run.truth.by_tuple.get((named["src"], named["dst"], named["sport"]))
        claims = judge.claims[flow.number] if flow else []
        texts.append(explainer.text(verdict, record, moment, published, claims))
    return texts
