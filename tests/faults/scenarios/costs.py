# SPDX-License-Identifier: Apache-2.0
"""What a connection, a program that lost something, an active event and a stream take of fabrictraced's
memory was an estimate: had one of them been too low, who made as many as their caps allow would have
had the kernel kill it.

Here each is made by the hundreds, and the resident memory that it took is held against its cost in
the budget that --check prints."""
import itertools
import resource
import socket
import ssl

import kit
from certificates import Authority
from kit import budget, check, data, held, number, record, resident, until

CONNECTIONS = 1000
TLS_CONNECTIONS = 300
PROGRAMS = 2000
STREAMS = 400


def costs(daemon):
    """{what: bytes of one}"""
    return {what: each for what, (_, each) in budget(daemon).items()}


def loss(n, round_):
    stages = b"".join(data(4, data(1, f"stage-{i}") + data(2, "records")
                           + number(3, 1000 * round_)
                           + data(6, data(1, "queue_full") + number(2, 500 * round_)))
                      for i in range(8))
    return record(kit.LOSS, number(1, 1) + data(2, f"program-of-some-length-{n}") + data(3, "agent")
                  + stages)


def lose(daemon, peer):
    """Each program loses half of what it gets, until an event stands for each."""
    rounds = itertools.count(1)

    def events():
        n = next(rounds)
        for payload in kit.batches((loss(i, n) for i in range(PROGRAMS)), 100000):
            peer.send(payload)
            check("the accounts are taken", peer.settled())
        return entries(daemon, "events") >= PROGRAMS

    until("an event stands for each", events)


def entries(daemon, table):
    line = [line for line in daemon.get("/metrics").splitlines()
            if line.startswith(f'fabrictraced_table_entries{{table="{table}"}}')][0]
    return float(line.split()[1])


def listen(daemon):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", daemon.http))
    s.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    check("a stream begins", s.recv(12) == b"HTTP/1.1 200")
    return s


def connect_by_tls(folder):
    """As many as have shaken hands; what they are is for their first frame to say."""
    folder.mkdir()
    authority = Authority(folder)
    cert, key = authority.make("daemon", "DNS:localhost")
    daemon = kit.daemon(folder, f"tls:\n  cert: {cert}\n  key: {key}\n  ca: {authority.ca}\n")
    cost = costs(daemon)["connections"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.ca)
    context.load_cert_chain(*authority.make("peer", "URI:fabrictrace://agent/peer"))
    daemon.start()
    held_open = []

    def connect(count):
        for _ in range(count):
            raw = socket.create_connection(("127.0.0.1", daemon.port), timeout=kit.rig.WAIT_S)
            held_open.append(context.wrap_socket(raw, server_hostname="localhost"))
        daemon.get("/metrics")

    try:
        connect(10)
        before = resident(daemon)
        connect(TLS_CONNECTIONS)
        held("TLS connections", before, resident(daemon), TLS_CONNECTIONS, cost)
        daemon.stop()
    finally:
        daemon.kill()
        for one in held_open:
            one.close()


def run(folder):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    daemon = kit.daemon(folder, f"http_streams_max: {STREAMS}\nevents_max: {PROGRAMS}\n")
    cost = costs(daemon)
    check("costs are known", {"connections", "programs", "events", "HTTP streams"} <= set(cost), cost)
    daemon.start()
    held_open = []
    try:
        daemon.get("/metrics")
        before = resident(daemon)
        held_open += [kit.Peer(daemon.port, f"peer{i}") for i in range(CONNECTIONS)]
        until("all are connected", lambda: entries(daemon, "connections") >= CONNECTIONS)
        held("connections", before, resident(daemon), CONNECTIONS,
             cost["connections"] + cost["programs"])
        before = resident(daemon)
        lose(daemon, held_open[0])
        held("programs with an event", before, resident(daemon), PROGRAMS,
             cost["programs"] + cost["events"])
        before = resident(daemon)
        streams = [listen(daemon) for _ in range(STREAMS)]
        held_open += streams
        held("streams", before, resident(daemon), STREAMS, cost["HTTP streams"])
        daemon.stop()
    finally:
        daemon.kill()
        for one in held_open:
            one.close()
    connect_by_tls(folder / "tls")
