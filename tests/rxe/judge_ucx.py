# SPDX-License-Identifier: Apache-2.0
"""The source ports of UCX's queue pairs on the wire against those of a plan. Without an agent they have
that of the flow label which UCX gives to its first path, whatever their numbers are."""
import pathlib
import shutil

import judge_plan
import vm

LABEL = 0xfffff
UCX = pathlib.Path("/usr/bin/ucx_perftest")
PROGRAMS = (*judge_plan.PROGRAMS, UCX)


def prepare(share, build):
    judge_plan.prepare(share, build)
    modules = sorted(pathlib.Path("/usr/lib").glob("*/ucx/libuct_ib.so.0"))
    if not modules:
        raise vm.Lacks("ucx-utils is not installed: packaging/install-deps test")
    (share / "lib/ucx").mkdir()
    shutil.copy2(modules[0], share / "lib/ucx")
    for path in vm.libraries(modules[0]):
        shutil.copy2(path, share / "lib")


class Judge(judge_plan.Judge):
    def sent(self, name):
        """Its ends that sent something: (source, destination, its number, the peer's, ports)."""
        wire = self.wire(name)
        return [(src, dst, local, remote, wire[src, dst, remote]) for src, dst, local, remote in self.queue_pairs(name)
                if (src, dst, remote) in wire]

    def by_plan(self):
        sent = self.sent("planned")
        wrong = [f"{src} > {dst} qp {remote}: {sorted(ports)}" for src, dst, _, remote, ports in sent
                 if len(ports) != 1 or not ports <= judge_plan.PORTS[src, dst]]
        return wrong or ([] if {src for src, *_ in sent} == {judge_plan.H1, judge_plan.H2} else [sent])

    def by_label(self):
        port = (LABEL & 0x3fff ^ LABEL >> 14) | 0xc000
        sent = self.sent("alone")
        wrong = [f"{src} > {dst} qp {remote}: {sorted(ports)}" for src, dst, _, remote, ports in sent
                 if ports != {port}]
        return wrong or ([] if {src for src, *_ in sent} == {judge_plan.H1, judge_plan.H2} else [sent])


def judge(out, _):
    j = Judge(out)
    for name in ("planned", "alone"):
        j.check(f"{name}: UCX ran to its end", j.status(name))
    j.check(f"planned: {len(j.sent('planned'))} ends of queue pairs that UCX made have ports of the plan", j.by_plan())
    j.check("planned: the agent reports each with its numbers and port", j.reported())
    j.check(f"alone: {len(j.sent('alone'))} have that of UCX's own label", j.by_label())
    return j.passed, j.failed
