# SPDX-License-Identifier: Apache-2.0
"""Ten thousand connections that say nothing, to where records are taken, and as many to where HTTP is
answered. A thousand had been tried.

Meanwhile the honest go on, all three are reached by those who read, and a new peer is welcome. The
programs hang up, each time, and nothing is left."""
import resource
import socket

import honest
import judged
import kit
from kit import check, equal, until

MANY = 10000
FILES = MANY + 2000
BATCH = 500  # connections, after which the programs get a look


def connect_all(ports, count):
    """By turns to each of these; the backlog of a listener holds a batch."""
    made = []
    for i in range(count):
        s = socket.socket()
        s.settimeout(kit.rig.WAIT_S)
        # Ports of one address would run short.
        s.bind((f"127.0.{1 + i // BATCH}.1", 0))
        s.connect(("127.0.0.1", ports[i % len(ports)]))
        made.append(s)
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
        until("the daemon hangs up", lambda: entries(programs.daemon) == usual)
        check(f"all {MANY} were ended, of which {most:.0f} stood at once", all(map(ended, silent)))
        close_all(silent)
        silent = connect_all([p.http for p in programs.all], MANY)
        for program in programs.all:
            name = f"{honest.PREFIX[program.name]}_http_connections_total"
            until(f"{program.name} has accepted its third",
                  lambda p=program, n=name: p.metric(n) >= MANY // len(programs.all))
            cut = program.metric(f"{honest.PREFIX[program.name]}_http_cut_off_total")
            print(f"{program.name}: {cut:.0f} connections over HTTP cut off")
        programs.note_peaks()
        close_all(silent)
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
