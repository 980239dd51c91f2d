#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make check-headers: the rooms of HACKING.md hold, by the symbols of the object files.

Which object needs whose symbols says more than includes do: a declaration can be written twice, and
a pointer to a struct be passed without its header. No object needs, by any way round, itself; none
needs a room further down in HACKING.md's table than its own, nor what lies outside the rooms of its
program; lib/ and proto/ need what the table of layers says; few sources lie outside the rooms. Each
file that HACKING.md names is there. And no struct or enum is defined twice, so that a name says which one is meant.

usage: check_rooms.py SRCDIR BUILDDIR    after `make`
       check_rooms.py --graph SRCDIR BUILDDIR    prints which room needs which
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

PROGRAMS = ("daemon", "agent", "switchpoll", "cli")
FOLDERS = ("lib", "proto", *PROGRAMS)
APART = ("agent/nccl/", "agent/shim/")  # linked with no other part
LOOSE = {"daemon": 5, "agent": 8, "switchpoll": 7, "cli": 4}


def table_of(hacking, head):
    """The rows of the table that begins with a column of this name."""
    text = pathlib.Path(hacking).read_text(encoding="utf-8")
    table = re.search(rf"^\| {head} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.M)
    if not table:
        sys.exit(f"{hacking}: no table of each {head}")
    return [row.strip("|").split("|") for row in table.group(1).splitlines()]


def names_in(cell):
    return [name.rstrip("/") for name in re.findall(r"`([a-z/]+)`", cell)]


def rooms_of(hacking):
    """The rooms with their rank: each may need those above it."""
    rooms = [name for row in table_of(hacking, "room") for name in names_in(row[0])]
    return {room: rank for rank, room in enumerate([*rooms, *PROGRAMS])}


def layers_of(hacking):
    """What each layer of the libraries may need besides itself."""
    return {name: names_in(row[-1]) for row in table_of(hacking, "layer") for name in names_in(row[0])
            if name.startswith(("lib", "proto"))}


def objects_of(src, build):
    """Object files by source, of sources that are still there. Automake puts the name of a library before
    that of an object where it has flags of its own."""
    for folder in FOLDERS:
        for path in sorted((build / folder).rglob("*.o")):
            plain = path.with_name(re.sub(r"^lib\w+_a-", "", path.name))
            source = str(plain.relative_to(build).with_suffix(".c"))
            if source.startswith(APART) or source.endswith(".pb-c.c"):
                continue
            if (src / source).exists():
                yield source, path


def symbols_of(path):
    """What an object defines for others, and what it needs."""
    out = subprocess.run(["nm", "-P", "-g", str(path)], check=True, text=True, stdout=subprocess.PIPE)
    defined, needed = set(), set()
    for line in out.stdout.splitlines():
        name, kind = line.split()[:2]
        (needed if kind in "Uwv" else defined).add(name)
    return defined, needed


def graph_of(symbols):
    """Source to {source it needs: a symbol for which}. Programs have a symbol each of one name, so
    that of the same program counts."""
    owners = collections.defaultdict(list)
    for source, (defined, _) in symbols.items():
        for name in defined:
            owners[name].append(source)
    graph = {source: {} for source in symbols}
    for source, (_, needed) in symbols.items():
        for name in sorted(needed):
            at = [o for o in owners[name] if o.split("/")[0] in (source.split("/")[0], "lib", "proto")]
            for owner in at:
                if owner != source:
                    graph[source].setdefault(owner, name)
    return graph


def circles_of(graph):
    """The strongly connected parts of more than one node (Tarjan's algorithm)."""
    low, order, stack, circles = {}, {}, [], []

    def visit(node):
        low[node] = order[node] = len(order)
        stack.append(node)
        for other in graph[node]:
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                circles.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for node in graph:
        if node not in order:
            visit(node)
    return circles


def room_of(source, rooms):
    """The room, or layer, that a source lies in."""
    folder = os.path.dirname(source)
    while folder not in rooms and "/" in folder and not folder.startswith("lib/"):
        folder = os.path.dirname(folder)
    return folder


def layer_of(room):
    return "/".join(room.split("/")[:2]) if room.startswith("lib/") else room.split("/")[0]


def faults_of(graph, rooms, layers):
    """Sentences about what does not hold."""
    for circle in circles_of(graph):
        ways = [f"{a} needs {graph[a][b]} of {b}" for a in circle for b in graph[a] if b in circle]
        yield "a circle: " + ", ".join(ways)
    for source in graph:
        at = room_of(source, rooms)
        if at not in rooms and at not in layers:
            yield f"{source}: in no room or layer of HACKING.md's tables"
            continue
        for other, name in graph[source].items():
            to = room_of(other, rooms)
            if at in rooms and to in rooms and rooms[to] > rooms[at]:
                yield f"{source}: needs {name} of {other}, but {to}/ comes after {at}/"
            layer, below = layer_of(at), layer_of(to)
            if layer in layers and below != layer and below not in layers[layer]:
                yield f"{source}: needs {name} of {other}, but {layer}/ may not use {below}/"
    for folder, most in LOOSE.items():
        loose = [source for source in graph if os.path.dirname(source) == folder]
        if len(loose) > most:
            yield f"{folder}/: {len(loose)} sources outside its rooms, over {most}"


def missing_of(src, names):
    """Sentences about files that HACKING.md names and that are not there. A name without a folder is that
    of a file somewhere; with NAME or MODULE in it, a pattern for the reader."""
    text = (src / "HACKING.md").read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"`(?:\.\./)*([\w./-]+\.(?:c|h|py|sh|mk|awk|proto|yaml|md))`", text))):
        if re.search(r"[A-Z]{4}", name.rsplit("/", 1)[-1].removesuffix(".md")) and not name.endswith(".md"):
            continue
        if not any(f == name or f.endswith("/" + name) for f in names):
            yield f"HACKING.md: there is no {name}"


def namesakes_of(src):
    """Sentences about structs and enums that have a name in common."""
    places = collections.defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((src / folder).rglob("*.[ch]")):
            if not path.name.endswith((".pb-c.c", ".pb-c.h")):
                for kind in re.findall(r"^(?:struct|enum|union) (ft_\w+)\s*\{",
                                       path.read_text(encoding="utf-8"), re.M):
                    places[kind].append(str(path.relative_to(src)))
    for kind, paths in places.items():
        if len(paths) > 1:
            yield f"{kind}: defined in " + " and in ".join(paths)


def main():
    args = [arg for arg in sys.argv[1:] if arg != "--graph"]
    if len(args) != 2:
        sys.exit(__doc__)
    src, build = (pathlib.Path(arg) for arg in args)
    rooms, layers = rooms_of(src / "HACKING.md"), layers_of(src / "HACKING.md")
    graph = graph_of({source: symbols_of(path) for source, path in objects_of(src, build)})
    if "--graph" in sys.argv:
        ways = {(room_of(a, rooms), room_of(b, rooms)) for a in graph for b in graph[a]}
        for room in sorted({a for a, _ in ways}):
            print(room, "->", " ".join(sorted(b for a, b in ways if a == room != b)))
        return
    files = [str(p.relative_to(src)) for top in src.iterdir() if top.name not in ("build", ".git")
             for p in (top.rglob("*") if top.is_dir() else [top])]
    faults = [*faults_of(graph, rooms, layers), *namesakes_of(src), *missing_of(src, files)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if not graph:
        sys.exit(f"{build}: no object files: make first")
    print(f"{len(graph) - len(faults)} passed, {len(faults)} failed, 0 skipped")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
