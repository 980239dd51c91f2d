#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What srv6_blocks cost the poller: instructions of a build on the samples of psn_cost.py without blocks and with
eight of them, where destinations are IPv4, IPv6 outside of all blocks, and containers of micro-SIDs in the last one.

usage: srv6_cost.py POLLER    needs valgrind"""
import ipaddress
import struct
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden" / "switchpoll"))
import make_captures as c  # noqa: E402
import psn_cost  # noqa: E402

BLOCKS = [f"fc00:{n:x}::/32" for n in range(8)]


def ends(src, dst):
    """The same in IPv6, outside of all blocks."""
    return [f"fd0{i}:{address.split('.')[2]}::{address.split('.')[3]}" for i, address in enumerate((src, dst))]


def plain(src, dst, sport, payload):
    return c.udp(*ends(src, dst), sport, payload)


def routed(src, dst, sport, payload):
    """To a NIC, over a switch that the sender chose and the last one."""
    leaf, nic = map(int, dst.split(".")[2:])
    sids = struct.pack(">8H", 0xfc00, len(BLOCKS) - 1, 0x20 + sport % 4, 0x40 + leaf, 0x101 + nic, 0, 0, 0)
    return c.udp(ends(src, dst)[0], ipaddress.IPv6Address(sids), sport, payload)


def main(poller):
    blocks = ("--set", f"srv6_blocks=[{','.join(BLOCKS)}]")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "samples.pcap"
        for what, ip in (("IPv4", c.udp), ("IPv6 outside of the blocks", plain), ("micro-SIDs", routed)):
            for each, fold in ((3, "60s"), (3, "1s"), (1, "1s")):
                file.write_bytes(psn_cost.capture(each, ip))
                without, with_blocks = (psn_cost.instructions(poller, file, fold, folder, more) for more in ((), blocks))
                print(f"{what}, {fold}, samples of a sum in a second {each}: {without / 1e6:.1f} million, with blocks "
                      f"{with_blocks / 1e6:.1f}, {100 * (with_blocks / without - 1):+.1f} %", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
