# SPDX-License-Identifier: Apache-2.0
"""Ten thousand connections that say nothing, to where records are taken, and as many to where HTTP is
answered. A thousand had been tried.

Meanwhile the honest go on, all three are reached by those who read, and a new peer is welcome. The
programs hang up, each time, and nothing is left."""
import resource
import socket
import time

import honest
import judged
import kit
from kit import check, equal, until

MANY = 10000
FILES = MANY + 7000  # some thousand of the first still stand when the others come
OF_ADDRESS = 500  # connections: ports of one address would run short
BATCH = 30        # that a listener's backlog has room for on top of as many
PAUSE_S = 0.002
LISTENING = "0A"
HTTP_MAX = 700    # connections at once, of each program; fabrictraced has the most
HONEST = 3        # of them that somebody reads by, for a moment


def backlog(port):
    """Connections that nobody has accepted yet, by the kernel, which lists those who listen first."""
    with open("/proc/net/tcp") as rows:
        for fields in map(str.split, rows):
            if fields[3] == LISTENING and int(fields[1].rsplit(":", 1)[1], 16) == port:
                return int(fields[4].rsplit(":", 1)[1], 16)
    raise RuntimeError(f"nobody listens at {port}")


def connect_all(ports, count):
    """By turns to each of these, no faster than they are taken: who finds the backlog full tries again only
    after a second."""
    made = []
    for i in range(count):
        s = socket.socket()
        s.settimeout(kit.rig.WAIT_S)
        s.bind((f"127.0.{1 + i // OF_ADDRESS}.1", 0))
        s.connect(("127.0.0.1", ports[i % len(ports)]))
        made.append(s)
        while i % BATCH == 0 and max(map(backlog, ports)) > BATCH:
            time.sleep(PAUSE_S)
    return made


def close_all(connections):
    for s in connections:
        s.close()


def ended(connection):
    """By the other side, be it with a reason."""
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def entries(daemon):
    """Connections to where records are taken, as the daemon tells."""
    line = [line for line in daemon.get("/metrics").splitlines()
            if line.startswith('fabrictraced_table_entries{table="connections"}')][0]
    return float(line.split()[1])


def still_open(connections):
    """The others have descriptors, which are needed for more."""
    left = [s for s in connections if not ended(s)]
    close_all(set(connections) - set(left))
    return left


def http(program, name):
    return program.metric(f"{honest.PREFIX[program.name]}_http_{name}")


def over_http(programs):
    """As many make room for one another, and the last are hung up on."""
    before = {p: (http(p, "connections_total"), http(p, "cut_off_total")) for p in programs.all}
    silent = connect_all([p.http for p in programs.all], MANY)
    try:
        for place, program in enumerate(programs.all):
            own = silent[place::len(programs.all)]
            accepted, cut = before[program]
            until(f"{program.name} has accepted its third",
                  lambda p=program, n=accepted + len(own): http(p, "connections_total") >= n)
            cut, stand = http(program, "cut_off_total") - cut, http(program, "connections")
            check(f"{program.name}: {cut:.0f} of {len(own)} connections over HTTP were cut off, "
                  f"{stand:.0f} stood at once",
                  stand <= HTTP_MAX and len(own) - HTTP_MAX <= cut <= sum(map(ended, own)), sum(map(ended, own)))
        programs.note_peaks()
        for place, program in enumerate(programs.all):
            own = silent[place::len(programs.all)]
            until(f"{program.name} hangs up over HTTP", lambda some=own: all(map(ended, some)))
            until(f"and {program.name} has nothing left of them",
                  lambda p=program: http(p, "connections") <= HONEST)
    finally:
        close_all(silent)


def judge(programs, work, calls):
    sent = work.sent
    records = judged.Records(sent, programs.job.pid).read(programs.daemon.out)
    equal("numbered records that are not there once", [
        n for n in range(1, sent.numbered + 1) if records.numbered[n] != 1][:5], [])
    equal("calls of NCCL in collective records", records.events, calls)
    equal("honest readers without an answer", sent.unread[:5], [])
    records.check_paths()
    records.longest_outage()
    records.check_accounts()
    judged.check_memory(programs.peaks)


def run(folder):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < FILES:
        raise kit.Skipped(f"needs {FILES} descriptors")
    # The programs inherit it; their units have more.
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    honest.own_network()
    rng = honest.new_rng()
    programs, work, silent = honest.Programs(folder, "path_refresh: 2s\n"), None, []
    try:
        programs.start()
        programs.start_job()
        work = honest.Work(programs, rng)
        usual = entries(programs.daemon)
        silent = connect_all([programs.daemon.port], MANY)
        most = entries(programs.daemon) - usual
        peer = programs.peer("gpu05")
        equal("a new peer is welcome", peer.answer[0], kit.WELCOME)
        peer.close()
        programs.note_peaks()
        silent = still_open(silent)
        over_http(programs)
        until("the daemon hangs up", lambda: entries(programs.daemon) == usual)
        check(f"all {MANY} were ended, of which {most:.0f} stood at once", all(map(ended, silent)))
        work.stop()
        calls = programs.end_job()
        programs.settle()
        programs.stop()
        judge(programs, work, calls)
    finally:
        if work:
            work.over.set()
        programs.kill()
        close_all(silent)
