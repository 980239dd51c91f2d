# SPDX-License-Identifier: Apache-2.0
"""One run from its seed to what the judge says."""
import resource
import tempfile
from pathlib import Path

from . import replay, standing
from .cases import Run
from .explain import Explainer
from .found import Events, Links, Names
from .idle import Idle
from .judge import Judge
from .report import Tally
from .volumes import Windows


def one_run(task):
    """task: a dict of name, seed, flows, seconds, delay, fold, daemon, settings, keep, explain. Returns
    (name, Tally, texts that explain)."""
    run = Run(task["name"], task["seed"], task["flows"], task["seconds"], task["delay"])
    if task["keep"]:
        folder = Path(task["keep"], f"{run.name}-{run.seed}")
        folder.mkdir(parents=True, exist_ok=True)
        return run.name, *measured(run, folder, task)
    with tempfile.TemporaryDirectory(prefix="fidelity-") as folder:
        return run.name, *measured(run, Path(folder), task)


def measured(run, folder, task):
    tally = Tally()
    topology, observations, out = (folder / name for name in
                                   ("topology.yaml", "observations.ndjson", "records.ndjson"))
    begin = cpu_times()
    topology.write_text(run.fabric.yaml())
    with open(observations, "w", encoding="utf-8") as lines:
        writer = run.write(lines, task["fold"])
    tally.counts["observations"] = writer.observations
    generated = cpu_times()
    replay.run(task["daemon"], topology if run.case.named else None, observations, out,
               task["settings"])
    replayed = cpu_times()
    judge, windows, links, events, idle = judged(run, writer.loads, replay.records(out))
    slow = fill(tally, run, judge, windows)
    fill_found(tally, run, links, events)
    tally.counts.update(idle.counts())
    tally.seconds.update({"generate": generated[0] - begin[0], "daemon": replayed[1] - begin[1],
                          "judge": cpu_times()[0] - replayed[0]})
    return tally, explained(run, observations, judge, slow, windows.phantoms, task["explain"])


def cpu_times():
    """Seconds of computing: this process, and those that it waited for."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF,
                                                       resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime


def judged(run, sampled, records):
    names = Names(run.fabric)
    judge = Judge(run.truth, None if run.case.named else names)
    windows, events = Windows(run.truth, run.seconds, sampled, names), Events(run)
    idle = Idle(run)
    links = Links(run.fabric, run.truth, run.seconds, names, run.blind)
    for record in records:
        judge.take(record)
        if record["schema"] == "fabrictrace.link.v1":
            windows.take(record)
            links.take(record)
        elif record["schema"] == "fabrictrace.event.v1":
            events.take(record)
            idle.take(record)
    return judge, windows, links, events, idle


def fill(tally, run, judge, windows):
    """Returns the flows that were slow to be right again."""
    shares, calm, settled, unsettled, slow = standing.judge(run.truth, judge.claims, run.seconds)
    tally.counts.update(judge.counts)
    tally.counts.update({"runs": 1, "links": windows.records, "links_phantom": windows.phantom})
    tally.shares, tally.calm, tally.unsettled = shares, calm, unsettled
    for name, values in settled.items():
        tally.settled[name] = values
    tally.since_errors = judge.since_errors
    for moved, sums in windows.sums.items():
        tally.volumes[moved].update(sums)
    return slow


def fill_found(tally, run, links, events):
    tally.events = events.kinds
    tally.counts.update({"false_events": len(events.false), "lies": events.lies(),
                         "lies_named": len(events.named)})
    if not run.case.named:
        tally.counts.update({"found_links": links.right(), "found_wrong": len(links.wrong),
                             "true_links": len(links.busy)})
        tally.known_after_s.append(links.known_after_s)


def explained(run, observations, judge, slow, phantoms, wish):
    """Texts of the first findings, wrong ones first. wish: None, or how many at most, and only which
    verdicts; "slow" and "phantom" are two more."""
    if not wish:
        return []
    explainer = Explainer(run, observations)
    order = ("wrong", "no_samples", "unsprayed", "bad_shares", "wrong_share", "partial_wrong",
             "foreign", "outside", "since_wrong", "since_late", "single")
    texts = []
    for verdict, record, moment, published in sorted(judge.found, key=lambda f: order.index(f[0])):
        if len(texts) < wish["most"] and (not wish["only"] or verdict in wish["only"]):
            named = record["flow"]
            flow = run.truth.by_tuple.get((named["src"], named["dst"], named["sport"]))
            claims = judge.claims[flow.number] if flow else []
            texts.append(explainer.text(verdict, record, moment, published, claims))
    # Those with the most samples have the least excuse.
    for flow, last, took in sorted(slow, key=lambda s: -s[0].rate):
        if len(texts) < wish["most"] and "slow" in wish["only"]:
            texts.append(explainer.slow(flow, last, took, judge.claims[flow.number]))
    for start, end, link, said in phantoms:
        if len(texts) < wish["most"] and "phantom" in wish["only"]:
            texts.append(explainer.phantom(start, end, link, said, judge.claims))
    return texts
