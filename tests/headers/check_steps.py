#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make check-headers: what the loop calls is measured.

The longest step of a loop is a metric: each function that libevent calls says how long it took, by
ft_loop_step(), as those of watches do in lib/io/loop.c. BRIEF has those that do nothing that could
take long; a row of one that is gone goes.

usage: check_steps.py SRCDIR
"""
import pathlib
import re
import sys

# Who takes functions, and which of its arguments they are.
GIVEN = {
    "bufferevent_setcb": (1, 2, 3), "event_new": (3,), "evtimer_new": (1,), "evsignal_new": (2,),
    "event_base_once": (3,), "evconnlistener_new": (1,), "evconnlistener_set_error_cb": (1,),
    "evhttp_set_bevcb": (1,), "evhttp_set_gencb": (1,), "evhttp_connection_set_closecb": (1,),
    "evhttp_send_reply_chunk_with_cb": (2,), "evhttp_request_set_on_complete_cb": (1,),
    "evbuffer_add_cb": (1,),
}
BRIEF = {
    ("lib/io/http/channel.c", "on_close"),  # frees a stream
    ("lib/io/http/clients.c", "handle_accept_error"),  # pauses a listener
    ("lib/io/http/clients.c", "on_answered"),  # notes a time
    ("lib/io/http/slices.c", "on_taken"),  # queues an answer
    ("lib/io/transport/receiver.c", "handle_accept_error"),
    ("lib/io/transport/receiver_room.c", "count"),  # adds up bytes
}
MEASURES = re.compile(r"\b(ft_loop_step|count_step)\(")


def arguments(text, at):
    """Of the call whose parenthesis opens at `at`."""
    depth, begin, found = 0, at + 1, []
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if (depth == 1 and text[i] == ",") or depth == 0:
            found.append(text[begin:i].strip())
            begin = i + 1
        if depth == 0:
            return found
    return found


def bodies(text):
    """The functions of a file by name; forward declarations have none."""
    return {m[1]: m[2] for m in
            re.finditer(r"^[a-z][^;{}=]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", text, re.M | re.S)}


def measures(name, functions, seen=()):
    """Whether a function says how long it took, or does no more than call one that does."""
    body = functions.get(name, "")
    return bool(MEASURES.search(body)) or any(
        other not in seen and measures(other, functions, (*seen, name))
        for other in re.findall(r"^    (\w+)\(", body, re.M) if other in functions and other != name)


def main():
    src, faults, brief = pathlib.Path(sys.argv[1]), [], set(BRIEF)
    everywhere = {}
    paths = [p for folder in ("agent", "daemon", "switchpoll", "lib") for p in sorted((src / folder).rglob("*.c"))]
    texts = {str(p.relative_to(src)): p.read_text(encoding="utf-8") for p in paths}
    for text in texts.values():
        everywhere.update((n, b) for n, b in bodies(text).items() if n.startswith("ft_"))
    for path, text in texts.items():
        functions = {**everywhere, **bodies(text)}
        for m in re.finditer(r"\b(%s)\(" % "|".join(GIVEN), text):
            given = arguments(text, m.end() - 1)
            for i in GIVEN[m[1]]:
                name = given[i] if i < len(given) else "NULL"
                if name == "NULL" or (path, name) in BRIEF:
                    brief.discard((path, name))
                elif not (name == "call" and path == "lib/io/loop.c") and not measures(name, functions):
                    faults.append(f"{path}: {m[1]}: {name}() does not say how long it took: ft_loop_step()")
    faults += [f"tests/headers/check_steps.py: {name}() of {path} is gone" for path, name in sorted(brief)]
    print("\n".join(faults) or "check_steps.py: whatever the loop calls is measured")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
