# SPDX-License-Identifier: Apache-2.0
"""What switches tell of their ports, where they do: reports by SNMP with LLDP, or sFlow counters."""
import json

from .fabric import SPEED_BPS

INTERVAL_S = {"snmp": 10, "sflow": 20}


def chassis(fabric, name):
    number = list(fabric.switches).index(name)
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


class Ports:
    """how: "snmp" or "sflow". Each switch has its own moment within the interval."""

    def __init__(self, fabric, truth, rng, how, base_ms, silent=()):
        self.fabric, self.truth, self.how, self.base_ms = fabric, truth, how, base_ms
        self.silent = silent
        self.offsets = {name: rng.random() * INTERVAL_S[how] for name in fabric.switches}
        self.ends = {}
        for number, link in enumerate(fabric.links):
            self.ends[link.a, link.a_port] = number, link.b, link.b_port
            self.ends[link.b, link.b_port] = number, link.a, link.a_port

    def down_at(self, moment):
        down = set()
        for when, what, which in self.truth.faults:
            if when <= moment and what != "rehash":
                down = down | {which} if what == "down" else down - {which}
        return down

    def lines(self, second):
        """The records of one second, in order of time."""
        out = []
        for name, offset in self.offsets.items():
            moment = second + (offset - second) % INTERVAL_S[self.how]
            if moment < second + 1 and name not in self.silent:
                out += [(moment, record) for record in self.records(name, moment)]
        return [json.dumps(record, separators=(",", ":")) + "\n"
                for _, record in sorted(out, key=lambda item: item[0])]

    def records(self, name, moment):
        down, switch = self.down_at(moment), self.fabric.switches[name]
        time_ms = self.base_ms + int(moment * 1000)
        up = {port: self.ends.get((name, port), (None,))[0] not in down for port in switch.ports}
        if self.how == "sflow":
            return [{"schema": "fabrictrace.counters.v1", "time_ms": time_ms,
                     "agent": switch.address, "ifindex": index, "port": port, "source": "sflow",
                     "speed_bps": SPEED_BPS, "oper_up": up[port]}
                    for port, index in switch.ports.items()]
        return [{"schema": "fabrictrace.switch_report.v1", "time_ms": time_ms,
                 "interval_ms": INTERVAL_S["snmp"] * 1000, "agent": switch.address,
                 "addresses": [switch.address], "name": name, "chassis_kind": "mac",
                 "chassis_id": chassis(self.fabric, name), "reachable": True, "has_lldp": True,
                 "ports": [{"ifindex": index, "name": port, "speed_bps": SPEED_BPS,
                            "oper_up": up[port], "lldp_id_kind": "interface_name", "lldp_id": port}
                           for port, index in switch.ports.items()],
                 "neighbors": [self.neighbor(index, *self.ends[name, port][1:])
                               for port, index in switch.ports.items()
                               if (name, port) in self.ends and up[port]]}]

    def neighbor(self, ifindex, peer, peer_port):
        return {"ifindex": ifindex, "chassis_kind": "mac",
                "chassis_id": chassis(self.fabric, peer), "port_kind": "interface_name",
                "port_id": peer_port, "name": peer, "forwards": True}
