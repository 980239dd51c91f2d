# SPDX-License-Identifier: Apache-2.0
"""What links carried, by the samples and by the kernel. Pure: takes records and what the kernel says,
gives texts of what is wrong.

Records count frames, the kernel IP packets: that is 3 % of the frames here. A packet that was counted
twice would double it, an exporter that was away would take a third of it.
"""
from collections import defaultdict

TOTAL = 0.95, 1.12
WINDOW = 0.8, 1.25  # of one: an exporter may have been away for less than shows
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


def wrong_totals(windows, sent):
    """What is wrong in each window's sum over all links, and in that of all windows; sent: {window
    start: {(switch, port): bytes}}."""
    told, true = ({start: sum(of[start].values()) for start in sorted(windows)}
                  for of in (windows, sent))
    wrong = [f"window {start}: {value:.0f} bytes on all links, the kernel says {true[start]:.0f}"
             for start, value in told.items() if not WINDOW[0] <= value / true[start] <= WINDOW[1]]
    if told and not TOTAL[0] <= ratio(windows, sent) <= TOTAL[1]:
        wrong.append(f"{len(told)} windows: {sum(told.values()):.0f} bytes on all links, "
                     f"the kernel says {sum(true.values()):.0f}")
    return wrong


def wrong_links(windows, sent, sampling, frame_bytes=1082):
    """What is wrong in the sums of single links over all windows."""
    wrong = []
    for link in sorted({link for start in windows for link in sent[start]}):
        told, true = (sum(of[start].get(link, 0) for start in windows) for of in (windows, sent))
        if true / frame_bytes / sampling >= LINK_SAMPLES and not LINK[0] <= told / true <= LINK[1]:
            wrong.append(f"{link[0]} {link[1]}: {told:.0f} bytes, the kernel says {true:.0f}")
    return wrong


def ratio(windows, sent):
    """What was told over what was, all windows and links together."""
    told, true = (sum(sum(of[start].values()) for start in windows) for of in (windows, sent))
    return told / true if true else 0.0


def lowest(windows, sent):
    """The same of the window in which it is lowest."""
    return min((ratio({start: windows[start]}, sent) for start in windows), default=0.0)


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
