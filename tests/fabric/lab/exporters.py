# SPDX-License-Identifier: Apache-2.0
"""Exporters that change while flows go on: one is killed and started again, one calls itself by another
address of its switch for a while."""
import re

import speed

WAIT_S = 90
MISSING = re.compile(r"fabrictrace_switchpoll_network_(datagrams|samples)_missing_total")
RESTARTS = re.compile(r"fabrictrace_switchpoll_exporter_restarts_total\{agent=\"([^\"]+)\"")


def restarts(metrics):
    """{agent address: restarts of all its sub-agents}."""
    found = {}
    for name, value in metrics.items():
        if match := RESTARTS.match(name):
            found[match[1]] = found.get(match[1], 0) + int(value)
    return found


def follow_until(records, done):
    """What exporters have done shows with their next samples."""
    deadline = speed.Deadline(WAIT_S)
    while not done() and not deadline.passed():
        records.follow(0.5)


def change(fabric, pipeline, records, pause_s):
    """Does it all. Returns texts: what the poller made of it that is wrong."""
    layout = fabric.layout
    killed, moved = layout.leaves[0], layout.spines[0]
    before = pipeline.poller_metrics()
    records.follow(pause_s)
    fabric.stop_exporter(killed)
    fabric.start_exporter(killed)
    fabric.stop_exporter(moved)
    fabric.start_exporter(moved, layout.second_mgmt(moved))
    records.follow(pause_s)
    follow_until(records, lambda: layout.second_mgmt(moved) in restarts(pipeline.poller_metrics()))
    fabric.stop_exporter(moved)
    fabric.start_exporter(moved)
    records.follow(pause_s)
    there = {layout.mgmt(switch): len(fabric.taps[switch]) for switch in (killed, moved)}
    had = restarts(before)
    follow_until(records, lambda: all(
        restarts(pipeline.poller_metrics()).get(agent, 0) - had.get(agent, 0) >= count
        for agent, count in there.items()))
    after = pipeline.poller_metrics()
    wrong = [f"{name}: {after[name]:.0f}" for name in after
             if MISSING.match(name) and after[name] != before.get(name, 0)]
    told = restarts(after)
    for agent in {*told, *there}:
        count = told.get(agent, 0) - had.get(agent, 0)
        if count != there.get(agent, 0):
            wrong.append(f"{agent}: {count} restarts, not {there.get(agent, 0)}")
    if layout.second_mgmt(moved) not in told:
        wrong.append(f"{moved} never exported as {layout.second_mgmt(moved)}")
    return wrong
