# SPDX-License-Identifier: Apache-2.0
"""A training of two ranks with a rank that is stopped, one that is late, and nothing wrong: what is
diagnosed."""
import signal
import subprocess
import time

from follower import RANKS, speed

CALM_STEPS = 150  # before the fault
HEALTHY_STEPS = 300
LATE_MS = 120
HANG_S, SLOW_S = 15, 30  # goals: until it is named


class Training:
    def __init__(self, follower, program, name, steps, mode="train"):
        self.follower, self.name, self.outs, self.ranks = follower, name, [], []
        for rank in range(RANKS):
            self.outs.append(follower.folder / f"{name}-{rank}.out")
            with open(self.outs[-1], "w") as out, open(follower.folder / f"{name}-{rank}.err", "w") as err:
                self.ranks.append(subprocess.Popen(
                    [program, str(rank), str(RANKS), str(follower.folder / f"id-{name}"), mode, str(steps),
                     str(LATE_MS)], env=follower.rank_env(rank, name), stdout=out, stderr=err))

    def steps(self):
        return min(out.read_text().count("\n") for out in self.outs)

    def reaches(self, steps, seconds):
        return speed.wait(lambda: self.steps() >= steps or any(r.poll() is not None for r in self.ranks), seconds) \
            and self.steps() >= steps

    def raised(self):
        return [r for r in self.follower.diagnoses(self.name) if not r.get("cleared")]

    def named(self, syndrome, rank, seconds):
        """Seconds until the rank is named, None when it is not."""
        begun = time.monotonic()
        found = speed.wait(lambda: any(r["syndrome"] == syndrome and r.get("rank") == rank for r in self.raised()),
                           seconds, 0.2)
        return time.monotonic() - begun if found else None

    def ends_well(self, seconds):
        return speed.wait(lambda: all(r.poll() == 0 for r in self.ranks), seconds)

    def kill(self):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.kill()
            rank.wait()


def texts(records):
    return " | ".join(f"{r['syndrome']} rank {r.get('rank')}: {r.get('message')}" for r in records)


def healthy(follower, program, check, mode):
    job = Training(follower, program, f"healthy-{mode}", HEALTHY_STEPS, mode)
    try:
        begun = time.monotonic()
        check(f"{job.name}: ends", job.ends_well(180), f"{job.steps()} steps")
        print(f"   {job.steps()} steps, {1000 * (time.monotonic() - begun) / max(1, job.steps()):.0f} ms each")
        check(f"{job.name}: nothing is diagnosed", not job.raised(), texts(job.raised()))
    finally:
        job.kill()


def fault(follower, program, check, number, syndrome, seconds, mode):
    """A signal to rank 1, which is to be named, alone."""
    name = f"{number.name.lower()}-{mode}"
    job = Training(follower, program, name, 100000, mode)
    try:
        if not check(f"{name}: the job trains", job.reaches(CALM_STEPS, 90), f"{job.steps()} steps"):
            return
        early = job.raised()
        job.ranks[1].send_signal(number)
        took = job.named(syndrome, 1, 2 * seconds)
        check(f"{name}: {syndrome}, rank 1 is named", took is not None, texts(job.raised()))
        if took is not None:
            print(f"   after {took:.1f} s, goal {seconds} s\n   {texts(job.raised()[-1:])}")
        wrong = early + [r for r in job.raised() if (r["syndrome"], r.get("rank")) != (syndrome, 1)]
        check(f"{name}: nobody else is", not wrong, texts(wrong))
        if number == signal.SIGSTOP:
            job.ranks[1].send_signal(signal.SIGCONT)
            check(f"{name}: it is over when the rank goes on", speed.wait(
                lambda: any(r.get("cleared") for r in follower.diagnoses(name)), 60))
    finally:
        job.kill()


def run(follower, program, check):
    for mode in ("train", "graph"):
        healthy(follower, program, check, mode)
        fault(follower, program, check, signal.SIGSTOP, "noncomm_hang", HANG_S, mode)
        fault(follower, program, check, signal.SIGUSR1, "noncomm_slow", SLOW_S, mode)
        fault(follower, program, check, signal.SIGKILL, "noncomm_hang", HANG_S, mode)
    told, drops = follower.events()
    # What was in progress in a process when it was killed.
    lost = {reason: count for reason, count in drops.items() if reason != "unfinished"}
    check(f"of {told} events of the plugin none was dropped", told > 0 and not lost, str(drops))
