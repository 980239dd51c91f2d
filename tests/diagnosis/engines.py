# SPDX-License-Identifier: Apache-2.0
"""Ranks that run programs: what frameworks.py's jobs are made of. A program is a generator of what a rank does, in its
own order; operations of a communicator run one after the other, beside the rank's work and beside those of other
communicators. An operation begins for a rank when that has called it, what is before it in its queue is over, and what
it depends on has ended. It ends for all when the last of its ranks has begun it, and it has taken its time.

    ("work", ns)            computes
    ("call", operation)     calls it, and continues; of Machine.sum(), Machine.send() and Machine.receive()
    ("wait", operation)     until it has ended for this rank
    ("sync",)               the host waits for its GPU
"""
import collections

MS = 1_000_000
SECOND = 1000 * MS


class Operation:
    """One of a communicator, as all of its ranks see it."""

    def __init__(self, members, takes):
        self.members, self.takes = members, takes
        self.called = {}  # by rank: when, by its host and by its GPU
        self.after = {}  # by rank: the operations that are to have ended
        self.begun, self.end = {}, {}
        self.signs = {}  # by rank: function and bytes
        self.rows = {}  # by rank: what a row says besides times
        self.before = {}  # by rank: the one before in its queue
        self.then = []  # those that wait for it

    def try_to_begin(self):
        """Whether it is decided now when it ends."""
        if self.end or len(self.called) < len(self.members):
            return False
        for rank in self.members:
            needs = [self.before.get(rank), *self.after[rank]]
            if any(op and not op.end for op in needs):
                return False
        if len(set(self.signs.values())) > 1:
            return False  # ranks that disagree wait for ever
        for rank in self.members:
            needs = [op.end[rank] for op in (self.before.get(rank), *self.after[rank]) if op]
            self.begun[rank] = max([self.called[rank][1], *needs])
        over = max(self.begun.values()) + self.takes
        for i, rank in enumerate(self.members):
            self.end[rank] = over + 3_000 * (i % 5)
        return True


class Pause:
    """From a moment on all ranks stand still, each for about as long."""

    def __init__(self, at, lengths):
        self.at, self.lengths = at, lengths
        self.had = set()

    def over(self, rank, start, end, waits):
        """When something ends that would run from start to end."""
        if rank in self.had or end < self.at:
            return end
        self.had.add(rank)
        resumes = self.at + self.lengths[rank]
        if waits or start >= self.at:
            return max(end, resumes) if waits else resumes + end - start
        return end + self.lengths[rank]


class Machine:
    """Runs the programs of all ranks; what they did is in `operations`."""

    def __init__(self, ranks, host_share=0.0):
        self.ranks = ranks
        self.host_share = host_share  # what a host needs to call work, by what the work takes; 0: it waits for each
        self.gpu, self.host = [0.0] * ranks, [0.0] * ranks
        self.pauses = []
        self.stops = {}  # by rank: when it never does anything again
        self.queues = {}
        self.counts = collections.Counter()
        self.known = {}  # operations that were called by some rank, by communicator and number
        self.operations = []
        self.blocked = {}

    def sum(self, rank, comm, members, function, size, takes, after=(), sign=None):
        """A collective of these ranks; `takes` is what it transfers, in ns."""
        self.counts[comm, rank] += 1
        return self._enter((comm, self.counts[comm, rank]), (comm, rank), rank, members, takes, after,
                           (function, size) if sign is None else sign,
                           {"communicator": comm, "function": function, "bytes": size})

    def _pass(self, rank, source, target, comm, size, takes, function, peer):
        self.counts[comm, source, target, rank] += 1
        key = (comm, source, target, self.counts[comm, source, target, rank])
        return self._enter(key, (comm, source, target, rank), rank, (source, target), takes, (), size,
                           {"communicator": comm, "function": function, "bytes": size, "peer": peer})

    def send(self, rank, peer, comm, size, takes):
        return self._pass(rank, rank, peer, comm, size, takes, "Send", peer)

    def receive(self, rank, peer, comm, size, takes):
        return self._pass(rank, peer, rank, comm, size, takes, "Recv", peer)

    def _enter(self, key, queue, rank, members, takes, after, sign, row):
        op = self.known.get(key)
        if op is None:
            op = self.known[key] = Operation(tuple(members), takes)
            self.operations.append(op)
        op.signs[rank], op.rows[rank], op.after[rank] = sign, row, [a for a in after if a]
        op.before[rank] = self.queues.get(queue)
        self.queues[queue] = op
        return op

    def _called(self, op, rank):
        op.called[rank] = (self.host[rank], self.gpu[rank])
        for need in (op.before[rank], *op.after[rank]):
            if need and not need.end:
                need.then.append(op)
        self._decide(op)

    def _decide(self, op):
        left = [op]
        while left:
            one = left.pop()
            if one.try_to_begin():
                left += one.then
                for rank in one.members:
                    if self.blocked.get(rank) is one:
                        del self.blocked[rank]
                        self.ready.append(rank)

    def _passes(self, rank, end, waits):
        start = self.gpu[rank]
        for pause in self.pauses:
            end = pause.over(rank, start, end, waits)
        self.gpu[rank] = end

    def _step(self, rank, program):
        """Does what it can; whether it waits for an operation."""
        for what in program:
            if self.gpu[rank] >= self.stops.get(rank, float("inf")):
                return
            if what[0] == "work":
                before = self.gpu[rank]
                self._passes(rank, before + what[1], False)
                self.host[rank] += (self.gpu[rank] - before) * self.host_share
            elif what[0] == "call":
                self._called(what[1], rank)
            elif what[0] == "wait":
                self.waits[rank] = what[1]
                if not what[1].end:
                    self.blocked[rank] = what[1]
                    return
                self._passes(rank, max(self.gpu[rank], what[1].end[rank]), True)
                del self.waits[rank]
            if what[0] == "sync" or not self.host_share:
                self.host[rank] = self.gpu[rank]

    def run(self, program):
        """Until nobody continues; `program` makes that of a rank."""
        programs = [program(rank) for rank in range(self.ranks)]
        self.ready, self.waits = collections.deque(range(self.ranks)), {}
        while self.ready:
            rank = self.ready.popleft()
            op = self.waits.pop(rank, None)
            if op:
                self._passes(rank, max(self.gpu[rank], op.end[rank]), True)
            if self.gpu[rank] < self.stops.get(rank, float("inf")):
                self._step(rank, programs[rank])

    def rows(self, called):
        """(rank, start, end or None, what else a row says) of each operation that has begun, or was called."""
        for op in self.operations:
            for rank, times in op.called.items():
                begun = op.begun.get(rank)
                if begun is None:
                    needs = [op.before.get(rank), *op.after[rank]]
                    if any(need and not need.end for need in needs):
                        if called:
                            yield rank, times[0], None, op.rows[rank]
                        continue
                    begun = max([times[1], *(need.end[rank] for need in needs if need)])
                yield rank, times[0] if called else begun, op.end.get(rank), op.rows[rank]
