#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion of the program fabrictrace: what it offers against its own help and against what it
takes, and the scripts for bash and zsh as those shells run them.

Runs in the build folder, as a test of automake."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
PROGRAM = pathlib.Path("cli/fabrictrace").resolve()
BASH = SOURCE / "packaging/completion/bash/fabrictrace"
ZSH = SOURCE / "packaging/completion/zsh/_fabrictrace"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.stdout, done.stderr


def offered(*words):
    """{candidate: help} for the last of these words."""
    return dict(line.split("\t") for line in run(PROGRAM, "--complete", *words)[0].splitlines())


def helped(*words):
    """(commands, options) that the help has."""
    text = run(PROGRAM, *words, "--help")[0]
    return (re.findall(r"^  ([a-z]+) +\S", text, re.M), re.findall(r"^  (--[a-z-]+) +\S", text, re.M))


class Table(unittest.TestCase):
    def test_what_the_help_has(self):
        commands, options = helped()
        self.assertGreater(len(commands), 10)
        self.assertEqual(list(offered("")), commands)
        for command in commands:
            wanted = helped(command)[1]
            self.assertGreaterEqual(len(wanted), 2)
            self.assertEqual(list(offered(command, "--")), wanted, command)
            self.assertEqual(list(offered("--endpoint", "a:1", command, "-")), wanted, command)
            self.assertEqual(list(offered("--endpoint=a:1", "--json", command, "-")), wanted)
        self.assertLessEqual(set(options), set(offered("--")))
        for name, text in {**offered(""), **offered("paths", "--")}.items():
            self.assertRegex(text, r"^\S.*\S$", name)

    def test_beginnings(self):
        self.assertEqual(list(offered("ex")), ["explain", "export"])
        self.assertEqual(list(offered("paths", "--st")), ["--state"])
        self.assertEqual(list(offered("nonsense")), [])
        self.assertEqual(list(offered("paths", "x")), [])
        self.assertEqual(list(offered("links", "--state", "")), [])

    def test_values_are_taken(self):
        """Each value that is offered is one that the program takes: without a daemon it fails later."""
        for command, option in (("paths", "--state"), ("qps", "--state"), ("matrix", "--by"),
                                ("matrix", "--op"), ("events", "--kind")):
            values = list(offered(command, option, ""))
            self.assertGreater(len(values), 2, (command, option))
            self.assertEqual(list(offered(command, f"{option}=")),
                             [f"{option}={value}" for value in values])
            self.assertEqual(list(offered(command, option, values[1])), [values[1]])
            for value in values:
                err = run(PROGRAM, command, option, value, "--endpoint", "nonsense")[1]
                self.assertIn("Write the endpoint", err, (command, option, value))
        self.assertEqual(list(offered("matrix", "--by", "")), ["rank", "gpu", "host"])

    def test_states_and_kinds_are_those_of_the_daemon(self):
        proto = (SOURCE / "proto/fabrictrace.proto").read_text()
        kinds = re.search(r"^enum Kind \{\n(.*?)^\}", proto, re.M | re.S)[1]
        names = [name.lower() for name in re.findall(r"^ *KIND_(\w+) = [1-9]", kinds, re.M)]
        self.assertEqual(sorted(offered("events", "--kind", "")), sorted(names))
        source = (SOURCE / "daemon/pairing/pairing.c").read_text()
        states = re.findall(r"^ *\[FT_PAIR_\w+\] = \"(\w+)\",$", source, re.M)
        self.assertEqual(list(offered("qps", "--state", "")), states)


class Shells(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self.folder.name)
        (path / "fabrictrace").symlink_to(PROGRAM)
        (path / "map.svg").write_text("")
        self.env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}

    def tearDown(self):
        self.folder.cleanup()

    def shell(self, *command):
        done = subprocess.run(command, env=self.env, cwd=self.folder.name, capture_output=True,
                              text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout.splitlines()

    def bash(self, *words):
        """What bash offers for the last word, by the function that the script has registered."""
        return self.shell("bash", "--norc", "-c", '''
            . "$1"; shift
            set -u
            handler=$(complete -p fabrictrace) && handler=${handler#*-F } && handler=${handler%% *}
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            "$handler" fabrictrace "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            [ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
            ''', "bash", BASH, "fabrictrace", *words)

    def zsh(self, *words):
        """What the script hands to zsh's own functions."""
        return self.shell("zsh", "-f", "-c", '''
            _describe() { print -rl -- "${(@P)@[-1]}" }
            _files() { print -rl -- *(N) }
            complete_it() {
                local script=$1; shift
                local -a words=("$@"); local CURRENT=$#
                source $script
            }
            complete_it "$@"
            ''', "zsh", ZSH, "fabrictrace", *words)

    def test_bash(self):
        self.assertEqual(self.bash(""), list(offered("")))
        self.assertEqual(self.bash("expla"), ["explain"])
        self.assertEqual(self.bash("events", "--"), list(offered("events", "--")))
        self.assertEqual(self.bash("paths", "--state", "p"), ["partial"])
        # As bash splits --state=p.
        self.assertEqual(self.bash("paths", "--state", "=", "p"), ["partial"])
        self.assertEqual(self.bash("paths", "--state", "="), list(offered("paths", "--state", "")))
        self.assertEqual(self.bash("matrix", "--svg", "ma"), ["map.svg"])
        self.assertEqual(self.bash("live", "--topology", "ma"), ["map.svg"])
        self.assertEqual(self.bash("paths", "--ca", "ma"), ["map.svg"])
        self.assertEqual(self.bash("paths", "--token-file", "ma"), ["map.svg"])
        self.assertEqual(self.bash("analyze", "ma"), ["map.svg"])
        self.assertEqual(self.bash("analyze", "--s"), ["--serve"])
        self.assertEqual(self.bash("explain", ""), [])

    def test_zsh(self):
        self.assertEqual(self.zsh("expla"), [f"explain:{offered('ex')['explain']}"])
        self.assertEqual([line.partition(":")[0] for line in self.zsh("")], list(offered("")))
        self.assertEqual([line.partition(":")[0] for line in self.zsh("qps", "--state", "no_")],
                         ["no_peer", "no_address", "no_port"])
        self.assertEqual([line.partition(":")[0] for line in self.zsh("paths", "--state=pa")],
                         ["--state=partial"])
        self.assertIn("map.svg", self.zsh("matrix", "--svg", ""))
        self.assertIn("map.svg", self.zsh("live", "--topology", ""))
        self.assertIn("map.svg", self.zsh("analyze", ""))
        self.assertEqual(self.zsh("analyze", "--s")[0].partition(":")[0], "--serve")
        self.assertEqual(self.zsh("links", "--csv", "x"), [""])


if __name__ == "__main__":
    unittest.main()
