# SPDX-License-Identifier: Apache-2.0
"""What links carried, by the samples and by the kernel. Pure: takes records and the kernel's rates,
gives texts of what is wrong.

The estimate is of the hop that sampled a flow best, so it lies somewhat above the truth where samples
are few. A packet that was counted twice would double it.
"""
from collections import defaultdict

TOTAL = 0.9, 1.25
WINDOW = 0.8, 1.35  # of one: the kernel's rate is a mean, and who sends may have to wait
LINK = 0.7, 1.5
LINK_SAMPLES = 200  # that a link must have had to be judged alone


def link_bytes(records, start_ms, stop_ms):
    """{window start: {(switch, port): bytes placed}} of the windows within which all flows ran."""
    windows = defaultdict(dict)
    for seen in records.of("link"):
        record = seen.record
        if start_ms <= record["window_start_ms"] and record["window_end_ms"] <= stop_ms:
            windows[record["window_start_ms"]][record["switch"], record["port"]] = \
                record.get("bytes", 0)
    return dict(windows)


def wrong_totals(windows, rates, window_s):
    """What is wrong in each window's sum over all links, and in that of all windows."""
    true = sum(rates.values()) * window_s
    told = {start: sum(links.values()) for start, links in sorted(windows.items())}
    wrong = [f"window {start}: {value:.0f} bytes on all links, the kernel says {true:.0f}"
             for start, value in told.items() if not WINDOW[0] <= value / true <= WINDOW[1]]
    if told and not TOTAL[0] <= ratio(windows, rates, window_s) <= TOTAL[1]:
        wrong.append(f"{len(told)} windows: {sum(told.values()):.0f} bytes on all links, "
                     f"the kernel says {true * len(told):.0f}")
    return wrong


def wrong_links(windows, rates, window_s, sampling, frame_bytes=1082):
    """What is wrong in the sums of single links over all windows."""
    wrong = []
    for link, rate in sorted(rates.items()):
        true = rate * window_s * len(windows)
        told = sum(links.get(link, 0) for links in windows.values())
        if true / frame_bytes / sampling >= LINK_SAMPLES and not LINK[0] <= told / true <= LINK[1]:
            wrong.append(f"{link[0]} {link[1]}: {told:.0f} bytes, the kernel says {true:.0f}")
    return wrong


def ratio(windows, rates, window_s):
    """What was told over what was, all windows and links together."""
    told = sum(sum(links.values()) for links in windows.values())
    return told / (sum(rates.values()) * window_s * len(windows)) if windows else 0.0


def imbalances(record):
    """What is wrong in a program's loss record: received = processed + pending + drops."""
    return [f"{record['program']} {stage['name']}: {stage}" for stage in record["stages"]
            if stage.get("received", 0) != stage.get("processed", 0) + stage.get("pending", 0)
            + sum(drop["count"] for drop in stage.get("drops", ()))]


def drops_of(record, stage, reason):
    """How many a stage of a loss record dropped for this reason."""
    return sum(drop["count"] for s in record["stages"] if s["name"] == stage
               for drop in s.get("drops", ()) if drop["reason"] == reason)


def lost_on_the_way(record):
    """Stages of switchpoll's loss record that miss something by sequence numbers."""
    return [f"{stage['name']}: {drop['count']} missing of {stage['received']}"
            for stage in record["stages"] for drop in stage.get("drops", ())
            if drop["reason"] == "sequence_gap" and drop["count"]]
