# SPDX-License-Identifier: Apache-2.0
"""A run whose truth changes: flows go on while paths move on a schedule, the kernel is asked what is
true again and again, and records are judged by what was true at their time."""
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from . import judge, timeline, truth
from .fabric import HASH_SEED
from .layout import COLLECTOR
from .moves import Schedule
from .routes import Routes
from .timeline import NONE, PARTIAL, RIGHT, STALE, WRONG, Timeline
from .waited import WaitedOnTheWay

LOOK_S = 0.5
COUNTERS_S = 2
TICK_S = 0.05
SETTLED_S = 10  # of traffic before the first move
WELL_SAMPLED = 20  # samples a second a hop, as many as 300 in 15 s
WELL_AGAIN_S = 5  # after a change, if no other comes
SAMPLES_MIN = 5  # a hop, since the last change, for a flow to count
SAMPLES_S = 0.25  # a second a hop besides: samples of sparser flows grow old
AGAIN_S = 60
ASK_S = 1
VERDICTS = (RIGHT, STALE, WRONG, PARTIAL, NONE)


class Witness:
    """Looks at routes and counters of a lab while it runs. Counters are read by a thread of its own: that
    takes seconds on a busy machine, and records are to be seen when they come."""

    def __init__(self, fabric, flows):
        self.fabric = fabric
        self.flows = flows
        self.routes = Routes(fabric)
        self.timeline = Timeline()
        self.snapshots = []  # (from ms, to ms, Counters)
        self.next_look = self.next_counters = 0.0
        self.pool = ThreadPoolExecutor(1)
        self.counting = None
        self.look()
        self.count()

    def close(self):
        self.look()
        self.count()
        self.look()
        self.pool.shutdown()
        self.routes.close()

    def look(self):
        self.timeline.look(time.time() * 1000, self.routes.paths(self.flows))
        self.next_look = time.monotonic() + LOOK_S

    def count(self, wait=True):
        """Reads counters; what an earlier call began is over before."""
        if self.counting:
            self.counting.result()
        self.counting = self.pool.submit(self._count)
        self.next_counters = time.monotonic() + COUNTERS_S
        if wait:
            self.counting.result()

    def _count(self):
        begun_ms = time.time() * 1000
        counters = truth.Counters(self.fabric)
        self.snapshots.append((begun_ms, time.time() * 1000, counters))

    def change(self, step):
        """Makes a change between two looks, so that the time is known within which it was made."""
        self.look()
        step.apply(self.fabric)
        self.look()
        self.timeline.changes_ms.append(time.time() * 1000)
        with open(self.fabric.dir / "moves", "a", encoding="utf-8") as log:
            log.write(f"{self.timeline.changes_ms[-1]:.0f} {step}\n")

    def tick(self):
        now = time.monotonic()
        if now >= self.next_counters and self.counting.done():
            self.count(wait=False)
        if now >= self.next_look:
            self.look()

    def samples_since(self, at_ms):
        """{(Flow, switch, in, out): samples taken} after the first snapshot after this time."""
        first = next(c for begun_ms, _, c in self.snapshots if begun_ms >= at_ms)
        return Counter(self.snapshots[-1][2].sampled) - Counter(first.sampled)


class Course:
    """name: of the case, in what is printed. seconds: of moves; 0 without. steady: nothing is odd.
    wanted: kinds of events that there is a cause for."""

    def __init__(self, check, name, flows, seconds=0, steady=False, wanted=()):
        self.check = check
        self.name = name
        self.fabric, self.records, self.tally = check.fabric, check.records, check.tally
        self.flows = flows
        self.seconds = seconds
        self.steady = steady
        self.wanted = wanted
        self.again = ""
        self.steps = Schedule(self.fabric.layout, seconds, check.rng,
                              HASH_SEED.exists()).steps if seconds else []

    def _on_the_way(self):
        """Process ids of what a sample passes: the exporters, and programs in the collector."""
        return ([p.pid for some in self.fabric.exporters.values() for p in some],
                [p.pid for (_, node), p in self.check.pipeline.processes.items()
                 if node == COLLECTOR])

    def _follow(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.witness.tick()
            self.records.follow(min(TICK_S, left))
        self.check.pipeline.check_alive()

    def _move(self):
        """Changes are made by a thread of its own, as counters are read."""
        begun = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            for step in self.steps:
                self._follow(begun + step.at_s - time.monotonic())
                made = pool.submit(self.witness.change, step)
                while not made.done():
                    self.records.follow(TICK_S)
                made.result()
        return self.timeline.changes_ms[-1]

    def told(self, kind):
        """What events of a kind said that were raised in this course."""
        return [s.record["message"] for s in self.records.of("event", self.start_ms)
                if s.record["kind"] == kind and not s.record.get("cleared")]

    def _again(self, since_ms, paths, flows):
        """{Flow: ms until right again, or None}"""
        return timeline.right_again_ms(self.records, {flow: paths[flow] for flow in flows}, since_ms)

    def run(self):
        """Returns {verdict: records}."""
        truth.flush(self.fabric)
        every = [*self.flows, *(flow.reverse for flow in self.flows)]
        self.witness = Witness(self.fabric, every)
        self.timeline = self.witness.timeline
        self.records.waited = WaitedOnTheWay(self._on_the_way)
        self.start_ms = time.time() * 1000
        self.check.traffic.start(self.flows)
        # Nothing moved before; the poller says of a sample when its interval began.
        self.timeline.spans[0].from_ms -= timeline.FOLD_MS
        self._follow(SETTLED_S)
        last_ms = self._move() if self.steps else self.start_ms
        self.witness.count()
        paths = self.timeline.spans[-1].paths
        self._follow(2 * self.check.args.window)
        end = time.monotonic() + AGAIN_S
        while time.monotonic() < end and not (self._all_again(last_ms, paths)
                                              and all(map(self.told, self.wanted))):
            self._follow(ASK_S)
        self.witness.close()
        self.check.traffic.stop()
        stop_ms = time.time() * 1000
        window_ms = 1000 * self.check.args.window
        self.check.await_records(
            lambda r: judge.published(r, stop_ms // window_ms * window_ms), AGAIN_S)
        return self._judge(last_ms, stop_ms, paths)

    def _counted(self, last_ms, paths):
        """Data flows sampled often enough at each hop since the last change."""
        samples = self.witness.samples_since(last_ms)
        first_ms = next(b for b, _, _ in self.witness.snapshots if b >= last_ms)
        seconds = (self.witness.snapshots[-1][0] - first_ms) / 1000
        return [flow for flow in self._expected(paths)
                if min(samples[flow, *hop] for hop in paths[flow])
                >= max(SAMPLES_MIN, SAMPLES_S * seconds)]

    def _well_sampled(self):
        """Data flows that are so, and that are over links of the file at all times."""
        return [flow for flow, load in self.flows.items()
                if load.pps / self.fabric.sampling >= WELL_SAMPLED
                and all(path and self.fabric.layout.is_claimed(path)
                        for path in self.timeline.ever(flow))]

    def _all_again(self, last_ms, paths):
        some = self._counted(last_ms, paths)
        return all(ms is not None for ms in self._again(last_ms, paths, some).values())

    def _judge(self, last_ms, stop_ms, paths):
        name, tally, line = self.name, self.tally, self.timeline
        wrong, compared = timeline.disagreements(
            line, [(a, b, counters.all) for a, b, counters in self.witness.snapshots])
        moved = sum(line.moved(flow) for flow in self.flows)
        tally.check(f"{name}, routes agree with counters",
                    wrong or ([] if compared else ["no time without a change was looked at"]),
                    f"{moved} of {len(self.flows)} flows moved by {len(self.steps)} changes, "
                    f"{compared} times compared")
        count, wrong = timeline.judge(self.records, line, self.start_ms,
                                      self.check.allowed.keys() | self.check.judged)
        tally.check(f"{name}, no path record is wrong", wrong,
                    ", ".join(f"{count[said]} {said}" for said in VERDICTS))
        tally.check(f"{name}, paths are of moments at which flows were sampled", timeline.unattested(
            self.records, [(a, b, counters.sampled) for a, b, counters in self.witness.snapshots],
            self.start_ms))
        tally.check(f"{name}, paths are there since their window, when they were true",
                    timeline.outside_window(self.records, line, self.start_ms))
        tally.check(f"{name}, no bytes on links that carried none",
                    timeline.idle_links(self.records, line, self.start_ms, stop_ms))
        tally.check(f"{name}, events tell of moves that were",
                    timeline.wrong_moves(self.records, line, self.start_ms))
        self._judge_again(last_ms, stop_ms, paths)
        if self.steady:
            self._judge_imbalance(stop_ms, paths)
        return count

    def _judge_again(self, last_ms, stop_ms, paths):
        some = self._counted(last_ms, paths)
        again = self._again(last_ms, paths, some)
        self.again = _times(again.values())
        odd = len(self.flows) - len(self._expected(paths))
        self.tally.check(
            f"{self.name}, every sampled data flow is right after the last change",
            [f"{flow}: not in {AGAIN_S} s, {self._newest(flow)}"
             for flow, ms in again.items() if ms is None]
            or ([] if some else ["none was sampled"]),
            f"{len(some)} of {len(self.flows)} flows; {self.again}"
            + (f"; {odd} go where the topology file has no path for them" if odd else ""))
        well = self._well_sampled()
        if self.steps and well:
            wrong, times = timeline.unsettled(self.records, self.timeline, well,
                                              1000 * WELL_AGAIN_S, stop_ms)
            self.again += f"; well sampled after each change: {_times(times)}"
            self.tally.check(f"{self.name}, well sampled flows are right {WELL_AGAIN_S} s after each "
                             "change", wrong, f"{len(well)} flows; those that had moved: "
                             f"{_times(times)}")

    def _expected(self, paths):
        """Data flows whose paths the topology file has: of others it is enough not to be wrong."""
        return [flow for flow in self.flows if paths[flow]
                and self.fabric.layout.is_claimed(paths[flow])]

    def _newest(self, flow):
        newest = [seen for seen in self.records.of("path") if seen.flow == flow][-1:]
        return timeline.describe(newest[0], self.timeline) if newest else "no record"

    def _judge_imbalance(self, stop_ms, paths):
        windows = judge.full_windows(self.records, self.start_ms + 1000 * SETTLED_S / 2, stop_ms)
        data = {flow: paths[flow] for flow in self.flows}
        wrong = [text for window in windows
                 for text in judge.wrong_imbalance(window, self.fabric.layout, data)]
        self.tally.check(f"{self.name}, imbalance equals the kernel's",
                         wrong or ([] if windows else ["no full window was published"]),
                         f"{len(windows)} full windows")


def _times(times_ms):
    """Of how many, the middle and the longest."""
    known = sorted(ms for ms in times_ms if ms is not None)
    if not known:
        return f"0 of {len(times_ms)}"
    return (f"{len(known)} of {len(times_ms)}, median {known[len(known) // 2] / 1000:.1f} s, "
            f"longest {known[-1] / 1000:.1f} s")
