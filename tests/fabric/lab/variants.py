# SPDX-License-Identifier: Apache-2.0
"""The lab's variants: what may be odd about a fabric and its traffic, one by one, together, or drawn at
random. Pure; the options are those of run.py."""
import argparse

from . import moves
from .layout import Layout

SWAPS = ("leaf", "spine", "both")
MOVES_S = 45
LONG_MOVES_S = 120
EPILOG = """The variants (--tiers, --parallel, --sparse, --detour, --swapped, --moves) may be combined. Each
judges every path record by the path that the kernel had at the record's moment: right,
stale (the one before a move of the last second), partial or wrong. --long chooses among
them, and all else, by its seed."""


def add_options(add):
    """add: of an argparse.ArgumentParser."""
    add("--tiers", type=int, choices=(2, 3), help="3: pods, joined by superspines")
    add("--pods", type=int, default=2, help="in three tiers")
    add("--superspines", type=int, default=4, help="in three tiers, in planes")
    add("--mesh", action="store_true", help="each superspine has a link to every spine")
    add("--parallel", type=int, default=1, metavar="N", help="links between a leaf and a spine")
    add("--sparse", action="store_true", help="each flow is acknowledged twice a second, and a third "
        "of the small ones send no more")
    add("--detour", action="store_true", help="a spine sends what is for one leaf over another leaf "
        "and another spine")
    add("--swapped", choices=SWAPS, help="two cables are other than the topology file says: of one "
        "leaf, of one spine, or of two of each")
    add("--moves", type=int, default=0, nargs="?", const=MOVES_S, metavar="SECONDS",
        help=f"so long (default: {MOVES_S}) links bounce, go and come back, ECMP groups and hashes "
        "change, one by one and two within 0.7 s")
    add("--long", type=float, metavar="MINUTES",
        help="labs with variants chosen at random, one after the other")


def refusal(args):
    """Why these options do not go together, or None."""
    if args.discover and (args.swapped or args.detour):
        return "--swapped and --detour are about a topology file; --discover has none"
    if args.link_down and (args.sparse or args.swapped or args.detour):
        return "--link-down waits until each flow has its path in the file: not of these"
    if args.swapped and args.detour:
        return "--swapped may take away the links of --detour"
    if args.long and (args.link_down or args.discover or args.points or args.exporters or args.loss):
        return "--long has variants of its own choice"
    return None


def is_varied(args):
    return bool(args.tiers == 3 or args.parallel > 1 or args.sparse or args.detour
                or args.swapped or args.moves)


def layout_of(args):
    three = args.tiers == 3
    spines, leaves = (count or (2 if three else 4) for count in (args.spines, args.leaves))
    extent = {"pods": args.pods, "superspines": args.superspines, "mesh": args.mesh} if three else {}
    plain = Layout(spines, leaves, args.hosts, parallel=args.parallel, **extent)
    swaps = [swap(plain, args.swapped)] if args.swapped else []
    layout = Layout(spines, leaves, args.hosts, parallel=args.parallel, swaps=swaps,
                    detours=int(args.detour), **extent)
    if not moves.reaches_all(layout, frozenset()):
        raise ValueError("with these cables swapped a leaf is cut off: needs more spines")
    return layout


def swap(layout, which):
    """The numbers of the first two cables that differ as asked."""
    first = layout.planned[0]
    for number, link in enumerate(layout.planned):
        same = (link.a.node == first.a.node, link.b.node == first.b.node)
        if same == {"leaf": (True, False), "spine": (False, True), "both": (False, False)}[which]:
            return 0, number
    raise ValueError("there are no two cables to swap")


def draw(args, rng, seconds):
    """The options of one lab of a long run: ARGS with variants at random."""
    while True:
        three = rng.random() < 0.5
        case = argparse.Namespace(**{
            **vars(args), "tiers": 3 if three else 2, "spines": rng.choice((2, 2, 3)),
            "leaves": rng.choice((2, 3) if three else (3, 4)), "pods": 2,
            "superspines": rng.choice((2, 3, 4, 6)), "mesh": rng.random() < 0.5, "hosts": 2,
            "parallel": rng.choice((1, 1, 2)), "sparse": rng.random() < 0.4,
            "detour": rng.random() < 0.2, "swapped": rng.choice((None,) * 6 + SWAPS),
            "moves": round(seconds) if rng.random() < 0.85 else 0, "flows": rng.choice((32, 48, 64)),
            "sampling": rng.choice((20, 50)), "seed": rng.randrange(1, 1 << 30)})
        try:
            if refusal(case) is None and is_varied(case):
                layout_of(case)
                return case
        except ValueError:
            pass


def case_name(case):
    parts = [f"{case.tiers} tiers"] + ["mesh"] * (case.tiers == 3 and case.mesh)
    parts += [f"{case.parallel} parallel"] * (case.parallel > 1)
    parts += [name for name in ("sparse", "detour") if getattr(case, name)]
    parts += [f"swapped {case.swapped}"] * bool(case.swapped) + ["moves"] * bool(case.moves)
    return ", ".join(parts)


def case_options(case):
    """What to give run.py for this lab alone."""
    words = [f"--{name} {getattr(case, name)}" for name in
             ("tiers", "spines", "leaves", "parallel", "flows", "sampling", "seed")]
    if case.tiers == 3:
        words += [f"--superspines {case.superspines}"] + ["--mesh"] * case.mesh
    words += [f"--{name}" for name in ("sparse", "detour") if getattr(case, name)]
    words += [f"--{name} {getattr(case, name)}" for name in ("swapped", "moves")
              if getattr(case, name)]
    return " ".join(words)
