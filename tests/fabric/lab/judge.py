# SPDX-License-Identifier: Apache-2.0
"""Compares records with the truth. Pure: takes records and {Flow: path}, gives texts of what is
wrong, so an empty list is a pass."""
from .records import flow_of, latest_paths, path_of
from .truth import fim, format_path, loads

# Records carry six significant digits; the figures that so few flows can have lie further apart.
FIM_TOLERANCE = 1e-5


def unresolved(records, truth, sampled, since_ms=0):
    """Flows of truth that had a sample and are not resolved on their true path now."""
    latest = latest_paths(records, since_ms)
    wrong = []
    for flow, path in truth.items():
        if not sampled.get(flow):
            continue
        record = latest.get(flow)
        if not record:
            wrong.append(f"{flow}: {sampled[flow]} samples, no path record")
        elif record["state"] != "resolved":
            wrong.append(f"{flow}: {record['state']} ({record.get('reason', 'no reason')}), "
                         f"{sampled[flow]} samples")
        elif path_of(record["hops"]) != path:
            wrong.append(f"{flow}: {format_path(path_of(record['hops']))}, "
                         f"the kernel says {format_path(path)}")
    return wrong


def ever_wrong(records, allowed, but=()):
    """Path records that tell of a hop no allowed path ({Flow: [path, ...]}) of the flow has, that
    take an ECMP flow for a sprayed one, or whose flow nobody sent. but: flows judged elsewhere."""
    wrong = []
    for seen in records.of("path"):
        record = seen.record
        flow = seen.flow
        if flow in but:
            continue
        hops = path_of(record.get("hops", ()))
        paths = allowed.get(flow)
        if paths is None:
            wrong.append(f"{flow}: nobody sent it")
        elif record["state"] == "multipath":
            wrong.append(f"{flow}: multipath, but its path is one")
        elif record["state"] == "resolved" and hops not in paths:
            wrong.append(f"{flow}: {format_path(hops)}, allowed "
                         f"{' or '.join(map(format_path, paths))}")
        elif record["state"] == "partial" and not any(
                all(any(_fits(hop, true) for true in path) for hop in hops) for path in paths):
            wrong.append(f"{flow}: certain of {format_path(hops)}, allowed "
                         f"{' or '.join(map(format_path, paths))}")
    return wrong


def _fits(hop, true):
    """A partial path may leave out one side of a hop, but what it states is so."""
    return all(said is None or said == real for said, real in zip(hop, true))


def full_windows(records, start_ms, stop_ms):
    """[(window start, [imbalance records])] of the windows within which all flows ran."""
    windows = {}
    for seen in records.of("imbalance"):
        record = seen.record
        if start_ms <= record["window_start_ms"] and record["window_end_ms"] <= stop_ms:
            windows.setdefault(record["window_start_ms"], []).append(record)
    return sorted(windows.items())


def published(records, end_ms):
    """Whether all imbalance records of the window that ends then, or of a later one, are there: the
    fabric's own is the last."""
    return any(seen.record["window_end_ms"] >= end_ms and seen.record["scope"] == "fabric"
               for seen in records.of("imbalance"))


def wrong_imbalance(window, layout, truth):
    """What is wrong in the group records of one window, against {Flow: path} of its data flows."""
    start_ms, records = window
    groups = {r["name"]: r for r in records if r["scope"] == "group"}
    wrong = []
    for name, values in loads(layout, truth).items():
        record = groups.pop(name, None)
        where = f"window {start_ms}, {name}"
        if not record:
            wrong.append(f"{where}: no record")
        elif record.get("flows", 0) != sum(values):
            wrong.append(f"{where}: {record.get('flows', 0)} flows placed, "
                         f"{record.get('flows_unplaced', 0)} not, the kernel says {sum(values)}")
        elif not _same(record.get("fim"), fim(values)):
            wrong.append(f"{where}: fim {record.get('fim')}, the kernel says {fim(values)} "
                         f"of {values}")
    return wrong + [f"window {start_ms}, {name}: no such group" for name in groups]


def _same(value, true):
    if value is None or true is None:
        return value is true
    return abs(value - true) <= FIM_TOLERANCE * max(1, abs(true))


def _first_resolved_ms(records, flows):
    first = {}
    for seen in records.of("path"):
        if seen.flow in flows and seen.record["state"] == "resolved":
            first.setdefault(seen.flow, seen.at_ms)
    return first


def first_path_delays_ms(records, first_sample_ms):
    """Sorted: for each flow of first_sample_ms ({Flow: Unix ms}), from its first sample to its
    first resolved record being in the file."""
    return sorted(at_ms - first_sample_ms[flow]
                  for flow, at_ms in _first_resolved_ms(records, first_sample_ms).items())


def late_paths(records, first_sample_ms, limit_ms):
    """Which of these delays are over the limit, and over what programs waited for a processor
    meanwhile besides."""
    late = []
    for flow, at_ms in _first_resolved_ms(records, first_sample_ms).items():
        waited_ms = 1000 * records.waited.seconds(first_sample_ms[flow], at_ms)
        delay_ms = at_ms - first_sample_ms[flow]
        if delay_ms > limit_ms + waited_ms:
            late.append(f"{flow}: {delay_ms:.0f} ms, of which programs waited {waited_ms:.0f} ms for "
                        "a processor")
    return late


def path_change_problems(records, before, after, down_ms):
    """Judges a change of paths at down_ms: each flow that moved has its event with both paths, and
    no other flow has one."""
    wrong = []
    events = {}
    for seen in records.of("event", down_ms):
        record = seen.record
        if record["kind"] == "path_change":
            events.setdefault(flow_of(record["evidence"]), []).append(record)
    for flow in after:
        moved = before[flow] != after[flow]
        of_flow = events.get(flow, [])
        if not moved and of_flow:
            wrong.append(f"{flow}: did not move, but has a path_change event")
        elif moved and not of_flow:
            wrong.append(f"{flow}: moved without a path_change event")
        elif moved:
            old = path_of(of_flow[0]["evidence"].get("old_hops", ()))
            new = path_of(of_flow[-1]["evidence"].get("new_hops", ()))
            if (old, new) != (before[flow], after[flow]):
                wrong.append(f"{flow}: event tells of {format_path(old)} to {format_path(new)}, "
                             f"the kernel of {format_path(before[flow])} to "
                             f"{format_path(after[flow])}")
    return wrong


def back_over(records, links, before, after, down_ms, settle_ms):
    """Records that are resolved over one of the dead links ((switch, out port)): any later than
    settle_ms after it went down, what programs waited for a processor apart, and any of a flow whose
    new path was told already."""
    wrong = []
    told = set()
    for seen in records.of("path", down_ms):
        flow, record = seen.flow, seen.record
        if record["state"] != "resolved" or flow not in after:
            continue
        hops = path_of(record["hops"])
        if before[flow] != after[flow] and hops == after[flow]:
            told.add(flow)
        over = any((switch, out) in links for switch, _, out in hops)
        limit_ms = settle_ms + 1000 * records.waited.seconds(down_ms, seen.at_ms)
        if over and (flow in told or seen.at_ms > down_ms + limit_ms):
            wrong.append(f"{flow}: {format_path(hops)} {seen.at_ms - down_ms:.0f} ms after the "
                         "link went down")
    return wrong


def links_found(topology):
    """{((switch, port), (switch, port))} of the fabric links in the daemon's topology, both ways."""
    return {((switch["name"], port["name"]), (port["peer"], port["peer_port"]))
            for switch in topology["switches"] for port in switch.get("ports", ())
            if "peer_port" in port}


def links_there(layout, without=()):
    """The same of the lab, without some links."""
    ends = [((link.a.node, link.a.name), (link.b.node, link.b.name))
            for link in layout.fabric_links if link not in without]
    return {*ends, *((b, a) for a, b in ends)}


def hosts_found(topology):
    """{(address, switch, port)} of the hosts' attachments in the daemon's topology."""
    return {(address, at["switch"], at["port"])
            for host in topology["hosts"] for nic in host["nics"]
            for address in nic.get("addresses", ()) for at in nic["attach"]}


def hosts_there(layout):
    return {(address, layout.host_port(host).node, layout.host_port(host).name)
            for host in layout.hosts for address in (host.ip4, host.ip6)}
