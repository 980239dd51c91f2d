# SPDX-License-Identifier: Apache-2.0
"""Why a record is wrong, for people: the record, the flow's true paths, what befell the fabric, the
flow's samples around it and what was said of it before."""
import json

from .samples import BASE_MS

AROUND_S = 35.0
PHANTOM_LINES = 200
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def short(path):
    return "  ".join(f"{switch}[{entry or '?'}>{out or '?'}]".replace("Ethernet", "")
                     for switch, entry, out in path)


def seconds(ms):
    return f"{(ms - BASE_MS) / 1000:8.3f}" if ms is not None else "       -"


def observations_of(path, flow):
    """The flow's observations in a file of them."""
    part = f'"flow":{{"src":"{flow.src}","dst":"{flow.dst}","sport":{flow.sport},'
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if part in line:
                yield json.loads(line)


class Explainer:
    def __init__(self, run, observations):
        self.run, self.observations = run, observations
        self.switches = {s.address: s for s in run.fabric.switches.values()}
        self.ports = {(s.name, index): port for s in run.fabric.switches.values()
                      for port, index in s.ports.items()}

    def text(self, verdict, record, moment, published, earlier):
        """earlier: [(published, state, hops)] of the flow's records, this one among them."""
        named = record["flow"]
        flow = self.run.truth.by_tuple.get((named["src"], named["dst"], named["sport"]))
        out = [self.title(verdict)]
        if flow is None:
            return "\n".join([*out, f"nobody sent {named}"])
        paths = self.paths(flow)
        out += [self.about(flow), *self.record_lines(record, moment, published)]
        out += self.history_lines(flow, moment, paths)
        out += self.fault_lines(moment)
        out += self.sample_lines(flow, moment, paths)
        out += ["  said before:", *self.said_lines(earlier, paths, published)[-8:]]
        return "\n".join(out)

    def slow(self, flow, last, took, claims):
        """A flow that was not right again soon after the last fault of a group."""
        paths = self.paths(flow)
        after = f"right after {took:.1f} s" if took is not None else "not right until the next fault"
        return "\n".join([
            self.title("slow"), self.about(flow), f"  last fault at {last:.3f}, {after}",
            *self.history_lines(flow, last, paths), *self.fault_lines(last),
            *self.sample_lines(flow, last, paths, 3, 15), "  said (by second):",
            *self.said_lines(claims, paths, self.run.seconds + 60)])

    def phantom(self, start, end, link, said, claims):
        """A link with bytes in a window in which it carried none: who was said to be on it."""
        out = [self.title("phantom"), f"  link {link[0]} {link[1]}, window {start:.0f} to {end:.0f}: "
               f"{said:.0f} bytes"]
        for flow in sorted(self.run.truth.flows, key=lambda flow: -flow.bytes_per_s):
            if len(out) > PHANTOM_LINES:
                break
            near = [hops for when, _, hops in claims[flow.number] if start - 20 < when < end + 20]
            if any((switch, port) == link for hops in near for switch, _, port in hops):
                paths = self.paths(flow)
                out += [self.about(flow), *self.history_lines(flow, end, paths),
                        *self.sample_lines(flow, end, paths, end - start + 10, 5), "  said:",
                        *self.said_lines(claims[flow.number], paths, end + 20)[-8:]]
        return "\n".join(out + self.fault_lines(end))

    def title(self, verdict):
        return (f"=== {verdict}: case {self.run.name}, seed {self.run.seed}, "
                f"{len(self.run.truth.flows)} flows, {self.run.seconds} s, "
                f"{self.run.routing.hashing} hashing, blind {self.run.blind or 'none'}")

    @staticmethod
    def about(flow):
        return (f"flow {flow.number}: {flow}, {flow.rate:.2f} samples/s a hop"
                f"{', acknowledgements' if flow.ack else ''}{', sprayed' if flow.sprayed else ''}"
                f", sends from {flow.start:.1f} to {flow.end:.1f} s")

    @staticmethod
    def said_lines(claims, paths, until):
        return [f"    {when:8.1f} {state:<10} {letter_of(hops, paths)}{short(hops)}"
                for when, state, hops in claims if when <= until]

    def record_lines(self, record, moment, published):
        out = [f"  record: {record['state']} {record.get('reason', '')}, window "
               f"{seconds(record['window_start_ms']).strip()} to "
               f"{seconds(record['window_end_ms']).strip()}, time {seconds(record.get('time_ms')).strip()}"
               f", path since {seconds(record.get('path_since_ms')).strip()}, candidates "
               f"{record.get('candidates')}, published by {published:.0f}, judged at {moment:.3f}"]
        out += [f"    {hop.get('switch', '?'):<9} {hop.get('in', '?'):>11} > "
                f"{hop.get('out', '?'):<11} samples {hop.get('samples')}, share {hop.get('share')}"
                for hop in record.get("hops", ())]
        out += [f"    share {share.get('share')}: " + short(
            (h.get("switch"), h.get("in"), h.get("out")) for h in share.get("hops", ()))
            for share in record.get("shares", ())]
        return out

    def paths(self, flow):
        """{path: letter} of the flow's true paths, in order of time."""
        found = {}
        for _, paths in self.run.truth.history[flow.number]:
            for path in paths:
                found.setdefault(path, LETTERS[len(found) % 26] * (1 + len(found) // 26))
        return found

    def history_lines(self, flow, moment, paths):
        out = ["  true paths:"]
        history = self.run.truth.history[flow.number]
        for (start, now), (end, _) in zip(history, [*history[1:], (flow.end, None)]):
            if flow.sprayed:
                out.append(f"    {start:8.3f} {len(now)} paths: "
                           f"{', '.join(paths[path] for path in now)}")
                continue
            (path,) = now
            mark = "  <- judged here" if start <= moment < end else ""
            out.append(f"    {start:8.3f} {paths[path]} {short(path)}{mark}")
        if flow.sprayed:
            out += [f"    {letter}: {short(path)}" for path, letter in paths.items()]
        return out

    def fault_lines(self, moment):
        out = [f"  faults within {AROUND_S:.0f} s:"]
        for when, what, which in self.run.truth.faults:
            if abs(when - moment) <= AROUND_S:
                link = self.run.fabric.links[which] if what in ("down", "up") else None
                name = f"{link.a} {link.a_port} - {link.b} {link.b_port}" if link else which
                out.append(f"    {when:8.3f} {what} {name}")
        if self.run.fabric.told:
            out += [f"  the file says {told}, it is {true}" for told, true in
                    zip(self.run.fabric.told, self.run.fabric.links) if told != true]
        if self.run.fabric.detour:
            out.append("  %s sends what is for %s through %s" % self.run.fabric.detour)
        return out

    def sample_lines(self, flow, moment, paths, before=AROUND_S, after=5):
        out = ["  samples (stamps; which true paths have the hop):"]
        for o in observations_of(self.observations, flow):
            if not -before <= (o["first_ms"] - BASE_MS) / 1000 - moment <= after:
                continue
            switch = self.switches[o["agent"]].name
            hop = (switch, self.ports[switch, o["in_ifindex"]], self.ports[switch, o["out_ifindex"]])
            of = "".join(letter for path, letter in paths.items() if hop in path)
            late = "  (after)" if o["first_ms"] - BASE_MS > moment * 1000 else ""
            out.append(f"    {seconds(o['first_ms'])} .. {seconds(o['last_ms']).strip()} "
                       f"{o['samples']:4} x {switch:<9} {hop[1]:>11} > {hop[2]:<11} {of}{late}")
        return out


def letter_of(hops, paths):
    return f"{paths.get(hops, '-')} " if hops else ""
