# SPDX-License-Identifier: Apache-2.0
"""A cluster that runs programs of ranks: a stream of work, one of each communicator, and a host that calls ahead.

A program is a generator of one rank. It yields
    ("work", ns)               computation, once the host has called it and what came before is done
    ("host", ns)               the host does something else, so that nothing is called meanwhile
    ("call", comm, function, bytes)            a collective; gives a handle
    ("p2p", comm, ((kind, peer, bytes), ...))  sends and receives of one launch; gives a handle
    ("wait", handle)           the stream of work waits for it
    ("sync",)                  the host waits for the stream of work
All times are in nanoseconds of one true clock.
"""
import collections
import gc
import random

US, MS, S = 1000, 1000 * 1000, 1000 * 1000 * 1000
NEVER = 1 << 62


class Part:
    """One rank's side of an operation."""
    __slots__ = ("rank", "comm", "function", "bytes", "peer", "called", "ready", "before", "after", "end", "op",
                 "order", "key")

    def __init__(self, rank, comm, function, size, peer, called, ready, before):
        self.rank, self.comm, self.function, self.bytes, self.peer = rank, comm, function, size, peer
        self.called, self.ready, self.before, self.after, self.end = called, ready, before, [], None
        self.op = None

    def begin(self):
        """When the stream of its communicator reaches it; None: nobody knows."""
        ends = [b.end for b in self.before]
        return None if self.ready >= NEVER or None in ends else max([self.ready, *ends])


class Op:
    __slots__ = ("number", "comm", "parts", "size", "done", "stands")

    def __init__(self, number, comm, size):
        self.number, self.comm, self.parts, self.size, self.done, self.stands = number, comm, {}, size, False, False


class Comm:
    def __init__(self, name, ranks, serial=True):
        """serial: its sends and receives wait for each other, as those of one communicator do."""
        self.name, self.ranks, self.serial = name, tuple(ranks), serial


class Cluster:
    def __init__(self, seed, ranks, per_host, programs, cost, stop=None, dead=None):
        """cost(op, begins) -> {rank: end}, or None where it never ends; stop(rank, count of calls) whether the rank does nothing more; dead: {rank: time} of those that are gone."""
        self.rng = random.Random(f"cluster{seed}")
        self.ranks, self.per_host, self.cost, self.stop, self.dead = ranks, per_host, cost, stop, dead or {}
        self.programs = [programs(r) for r in range(ranks)]
        self.host, self.gpu = [self.rng.randrange(MS) for _ in range(ranks)], [0] * ranks
        self.calls, self.waiting, self.stopped = [0] * ranks, [None] * ranks, [False] * ranks
        self.over = [False] * ranks
        self.last, self.numbers = {}, collections.Counter()
        self.ops, self.rows = {}, []
        self.queue = collections.deque(range(ranks))
        self.drain = False

    def run(self, drain):
        """drain: what hosts call that wait for what never ends is called as well."""
        gc.disable()  # all that comes is kept: to look at it again and again takes half of the time
        self.settle()
        if drain and not all(self.over):
            self.drain = True
            self.queue.extend(r for r in range(self.ranks) if not self.over[r] and not self.stopped[r])
            self.settle()
        gc.enable()
        return self.rows

    def settle(self):
        while self.queue:
            item = self.queue.popleft()
            if isinstance(item, int):
                self.step(item)
            else:
                self.resolve(item)

    def step(self, rank):
        value = None
        if self.waiting[rank]:
            ends = [p.end for p in self.waiting[rank]]
            if None in ends:
                if not self.drain:
                    return
                self.gpu[rank] = NEVER
            else:
                self.gpu[rank] = max(self.gpu[rank], *ends)
            self.waiting[rank] = None
        while True:
            if self.stopped[rank]:
                return
            if self.stop and self.stop(rank, self.calls[rank]) or self.host[rank] > self.dead.get(rank, NEVER):
                self.stopped[rank] = True
                return
            try:
                what = self.programs[rank].send(value)
            except StopIteration:
                self.over[rank] = True
                return
            value = None
            self.host[rank] += 20 * US
            if what[0] == "work":
                self.gpu[rank] = min(NEVER, max(self.gpu[rank], self.host[rank]) + what[1])
            elif what[0] == "host":
                self.host[rank] += what[1]
            elif what[0] == "sync":
                if self.gpu[rank] >= NEVER:
                    self.stopped[rank] = True
                    return
                self.host[rank] = max(self.host[rank], self.gpu[rank])
            elif what[0] == "call":
                value = [self.add(rank, what[1], what[2], what[3], None, (what[1].name,), len(what[1].ranks), None)]
            elif what[0] == "p2p":
                value, shared = [], self.before(rank, what[1]) if what[1].serial else None
                for kind, peer, size in what[2]:
                    ends = (rank, peer) if kind == "Send" else (peer, rank)
                    value.append(self.add(rank, what[1], kind, size, peer, (what[1].name, *ends), 2, shared))
                if what[1].serial:
                    self.last[rank, what[1].name] = value
            elif what[0] == "wait":
                handle = what[1]
                if any(p.end is None for p in handle):
                    if self.drain:
                        self.gpu[rank] = NEVER
                        continue
                    self.waiting[rank] = handle
                    return
                self.gpu[rank] = max([self.gpu[rank], *(p.end for p in handle)])

    def before(self, rank, comm, *more):
        return self.last.get((rank, comm.name, *more), [])

    def add(self, rank, comm, function, size, peer, key, members, shared):
        before = shared if shared is not None else self.before(rank, comm, *((function, peer) if peer is not None else ()))
        part = Part(rank, comm, function, size, peer, self.host[rank], max(self.gpu[rank], self.host[rank]), before)
        for b in before:
            b.after.append(part)
        if shared is None:
            self.last[(rank, comm.name, *((function, peer) if peer is not None else ()))] = [part]
        number = self.numbers[rank, key]
        self.numbers[rank, key] += 1
        self.calls[rank] += 1
        op = self.ops.setdefault((key, number), Op(number, comm, members))
        part.op = op
        op.parts[rank] = part
        self.rows.append(part)
        self.queue.append(op)
        return part

    def resolve(self, op):
        if op.done or len(op.parts) < op.size:
            return
        begins = {r: p.begin() for r, p in op.parts.items()}
        if None in begins.values():
            return
        ends = self.cost(op, begins)
        if ends is None or any(self.dead.get(r, NEVER) < max(ends.values()) for r in ends):
            op.stands = True
            return
        op.done = True
        for rank, part in op.parts.items():
            part.end = ends[rank]
            for after in part.after:
                self.queue.append(after.op)
            if self.waiting[rank] and part in self.waiting[rank]:
                self.queue.append(rank)
