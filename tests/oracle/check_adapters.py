#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The adapters for switches: which command they send for a flow, and what they make of answers as
vendors document them. Runs in the build folder."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ADAPTERS = Path(__file__).resolve().parents[2] / "daemon" / "oracle" / "adapters"
V4 = ("10.0.1.1", "10.0.3.1", "17", "49152", "4791")
V6 = ("fd00:1::1", "fd00:3::1", "17", "49152", "4791")


class Asked(unittest.TestCase):
    def ask(self, adapter, *answers, flow=V4, switch="leaf1", ingress="Ethernet1", options=(), status=0):
        """Exit status and output of an adapter; self.sent are the commands that the switch got."""
        with tempfile.TemporaryDirectory() as folder:
            for i, answer in enumerate(answers):
                Path(folder, f"answer{i}").write_text(answer)
            runner = Path(folder, "run")
            runner.write_text("#!/bin/sh\n"
                              f"n=$(ls {folder} | grep -c ^sent)\n"
                              f"printf '%s\\n%s' \"$1\" \"$2\" > {folder}/sent$n\n"
                              f"cat {folder}/answer$n 2>&1\nexit {status}\n")
            runner.chmod(0o755)
            done = subprocess.run([ADAPTERS / adapter, "-r", runner, *options, switch, ingress, *flow],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={"PATH": os.environ["PATH"]})
            self.sent = [p.read_text().split("\n", 1) for p in sorted(Path(folder).glob("sent*"))]
            self.error = done.stderr
            return done.returncode, done.stdout

    def test_eos(self):
        self.assertEqual(self.ask("oracle-eos", "Output Interface: Ethernet43\n"), (0, "Ethernet43\n"))
        self.assertEqual(self.sent, [["leaf1", "show load-balance destination ip ingress-interface Ethernet1 "
                                      "src-ipv4-address 10.0.1.1 dst-ipv4-address 10.0.3.1 ip-protocol 17 "
                                      "src-l4-port 49152 dst-l4-port 4791"]])
        self.assertEqual(self.ask("oracle-eos", "", flow=V6)[0], 1)
        self.assertEqual(self.sent, [])

    def test_cumulus(self):
        self.assertEqual(self.ask("oracle-cumulus", "ecmpcalc: will query hardware\nswp3\n", ingress="swp1"),
                         (0, "swp3\n"))
        self.assertEqual(self.sent, [["leaf1", "sudo -n cl-ecmpcalc -i swp1 -s 10.0.1.1 -d 10.0.3.1 -p udp "
                                      "--sport 49152 --dport 4791"]])

    def test_sonic(self):
        for flow, ethertype, member in (
                (V4, 0x0800, {"ipv4": {"sip": V4[0], "dip": V4[1], "proto": 17}}),
                (V6, 0x86dd, {"ipv6": {"sip": V6[0], "dip": V6[1], "next_header": 17}})):
            self.assertEqual(self.ask("oracle-sonic", "Egress port: Ethernet4\n", flow=flow,
                                      ingress="Ethernet0", options=("-v", "Vrf_red")), (0, "Ethernet4\n"))
            command = self.sent[0][1]
            packet = json.loads(re.search(r"printf '%s' '([^']*)'", command)[1])
            self.assertEqual(packet, {"packet_info": {"outer": {
                "layer2": {"ethertype": ethertype}, **member, "tcp_udp": {"sport": 49152, "dport": 4791}}}})
            self.assertIn("show ip ecmp-egress-port --ingress-port Ethernet0 --packet \"$f\" --vrf Vrf_red;",
                          command)

    def test_sonic_leaves_nothing_behind(self):
        """The command, run by a real shell with another `show`."""
        self.ask("oracle-sonic", "Egress port: Ethernet4\n")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "show").write_text("#!/bin/sh\ncat \"$6\"\n")
            Path(folder, "show").chmod(0o755)
            done = subprocess.run(["sh", "-c", self.sent[0][1]], stdout=subprocess.PIPE, text=True, check=True,
                                  env={"PATH": f"{folder}:{os.environ['PATH']}", "TMPDIR": folder})
            self.assertEqual(json.loads(done.stdout)["packet_info"]["outer"]["ipv4"]["sip"], V4[0])
            self.assertEqual(os.listdir(folder), ["show"])

    def test_junos(self):
        self.assertEqual(self.ask("oracle-junos", "Resolved next hop: et-0/0/5.0\nEgress interface: et-0/0/5\n",
                                  ingress="et-0/0/0"), (0, "et-0/0/5\n"))
        self.assertIn("ingress-interface et-0/0/0.0 family inet source-address 10.0.1.1 destination-address 10.0.3.1 transport-protocol udp "
                      "source-port 49152 destination-port 4791", self.sent[0][1])
        self.assertEqual(self.ask("oracle-junos", "Egress interface: ae3.0\n", flow=V6), (0, "ae3\n"))
        self.assertIn(" family inet6 ", self.sent[0][1])
        self.ask("oracle-junos", "Egress interface: ae3.0\n", ingress="et-0/0/0.100")
        self.assertIn(" ingress-interface et-0/0/0.100 ", self.sent[0][1])

    def test_nxos(self):
        self.assertEqual(self.ask("oracle-nxos", "Load-share parameters used\nHash: 33\n"
                                  "Out IF: Eth1/49\n"), (0, "Ethernet1/49\n"))
        self.assertEqual(self.sent[0][1], "show routing hash 10.0.1.1 10.0.3.1 ip-proto 17 49152 4791 "
                         "in-interface Ethernet1")
        self.assertEqual(self.ask("oracle-nxos", "Out IF: port-channel12\n", "PC member: Ethernet1/3\n"),
                         (0, "Ethernet1/3\n"))
        self.assertEqual(self.sent[1][1], "show port-channel load-balance forwarding-path interface "
                         "port-channel 12 src-ip 10.0.1.1 dst-ip 10.0.3.1 l4-src-port 49152 l4-dst-port 4791")

    def test_linux(self):
        answer = ("10.0.3.1 from 10.0.1.1 via 10.9.0.2 dev swp49\n    cache iif swp1\n")
        self.assertEqual(self.ask("oracle-linux", answer, ingress="swp1"), (0, "swp49\n"))
        self.assertEqual(self.sent[0][1], "ip -4 route get 10.0.3.1 from 10.0.1.1 iif swp1 ipproto 17 "
                         "sport 49152 dport 4791")

    def test_what_is_no_answer(self):
        for adapter in sorted(p.name for p in ADAPTERS.iterdir() if p.name != "oracle-common"):
            with self.subTest(adapter):
                self.assertEqual(self.ask(adapter, "% Invalid input detected\n"), (1, ""))
                self.assertEqual(self.ask(adapter, ""), (1, ""))
                # A switch that cannot be reached.
                self.assertEqual(self.ask(adapter, "", status=255), (2, ""))
                self.assertIn("leaf1: the command failed", self.error)

    def test_several_answers_are_none(self):
        self.assertEqual(self.ask("oracle-eos", "Output Interface: Ethernet43\nOutput Interface: Ethernet44\n")[0],
                         1)

    def test_what_a_shell_would_run_is_no_name(self):
        for bad in ("leaf1;reboot", "$(reboot)", "`reboot`", "leaf 1", "-oProxyCommand=x", "a'b", "a\nb", "a|b"):
            for where in ({"switch": bad}, {"ingress": bad}, {"flow": (bad, *V4[1:])}):
                with self.subTest(bad=bad, where=where):
                    self.assertEqual(self.ask("oracle-linux", "x dev y\n", options=("--",), **where)[0], 2)
                    self.assertEqual(self.sent, [])

    def test_what_a_switch_answers_is_only_a_name(self):
        self.assertEqual(self.ask("oracle-linux", "10.0.3.1 dev $(reboot)\n")[0], 1)


if __name__ == "__main__":
    unittest.main()
