#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The main paths under valgrind: no leak, no use of what was never written or already freed. Runs in
# the build folder. Ends with "N passed, N failed, N skipped".
#
# usage: valgrind.sh SRCDIR
set -u

srcdir=$1
if ! command -v valgrind >/dev/null; then
    echo "FAIL  valgrind is not installed: packaging/install-deps test"
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
skipped=0

valgrind=(valgrind -q --error-exitcode=99 --leak-check=full
    "--show-leak-kinds=definite,indirect,possible"
    "--errors-for-leak-kinds=definite,indirect,possible" --num-callers=24)

# Counts a finished run; status is what it should be unless valgrind found something.
verdict()
{
    local what=$1 expected=$2 rc=$3
    if [ "$rc" -eq "$expected" ]; then
        passed=$((passed + 1))
        echo "ok    $what"
    else
        failed=$((failed + 1))
        echo "FAIL  $what (exit status $rc)"
        tail -n 60 "$work/err" | sed 's/^/      | /'
    fi
}

# Runs a command line; what valgrind finds, or another exit status, is a failure.
clean()
{
    local what=$1 expected=$2
    shift 2
    "${valgrind[@]}" "$@" >"$work/out" 2>"$work/err"
    verdict "$what" "$expected" $?
}

# The finder itself: a leak and a read of freed memory must not pass.
self_test()
{
    local what=$1 code=$2
    printf '#include <stdlib.h>\nint main(void)\n{\n%s\n}\n' "$code" >"$work/wrong.c"
    if ! ${CC:-cc} -O0 -o "$work/wrong" "$work/wrong.c" 2>"$work/err"; then
        failed=$((failed + 1))
        echo "FAIL  $what: ${CC:-cc} does not compile: packaging/install-deps"
        return
    fi
    "${valgrind[@]}" "$work/wrong" >"$work/out" 2>"$work/err"
    verdict "$what" 99 $?
}

self_test "finds a leak" 'char *volatile p = malloc(9); p = NULL; return p != NULL;'
self_test "finds a read of freed memory" \
    'char *volatile p = calloc(9, 1); free(p); return p[0] == 77 ? 1 : 0;'

for program in switchpoll/fabrictrace-switchpoll agent/fabrictrace-agent daemon/fabrictraced; do
    name=${program##*/}
    clean "$name --print-config" 0 "$program" --print-config -c /dev/null
    echo "no.such.key: 1" >"$work/bad.yaml"
    clean "$name refuses a wrong configuration" 78 "$program" --check -c "$work/bad.yaml"
done

captures=0
while read -r capture; do
    name=${capture##*/}
    captures=$((captures + 1))
    topology=${capture%/*}/topology.yaml
    [ -e "$topology" ] || topology=$srcdir/packaging/examples/topology.yaml
    case $capture in
    */agent/*)
        clean "agent replays $name" 0 agent/fabrictrace-agent -c /dev/null \
            --replay "$capture" --output "$work/$name.ndjson"
        ;;
    *)
        clean "switchpoll replays $name" 0 switchpoll/fabrictrace-switchpoll -c /dev/null \
            --replay "$capture" --output "$work/$name.ndjson"
        ;;
    esac
    clean "fabrictraced replays the records of $name" 0 daemon/fabrictraced -c /dev/null \
        --topology "$topology" --replay "$work/$name.ndjson" --sink "file:$work/$name.out"
    head -c 5000 "$capture" >"$work/cut.pcap"
    case $capture in
    */agent/*)
        clean "agent replays $name, cut off" 65 agent/fabrictrace-agent -c /dev/null \
            --replay "$work/cut.pcap" --output "$work/cut.ndjson"
        ;;
    *)
        clean "switchpoll replays $name, cut off" 65 switchpoll/fabrictrace-switchpoll \
            -c /dev/null --replay "$work/cut.pcap" --output "$work/cut.ndjson"
        ;;
    esac
done < <(find "$srcdir/tests/golden" -name '*.pcap' -o -name '*.pcapng' | sort)
if [ $captures -eq 0 ]; then
    echo "FAIL  there is no capture in $srcdir/tests/golden"
    failed=$((failed + 1))
fi

printf 'fabric: bad\nswitches:\n  - {name: leaf1, colour: red}\nlinks:\n%s\n' \
    '  - {a: leaf1, a_port: E1, b: leaf9, b_port: E1}' >"$work/bad.yaml"
clean "fabrictraced refuses a wrong topology" 78 daemon/fabrictraced --check -c /dev/null \
    --topology "$work/bad.yaml"
printf '{\nno record\n{"schema":"fabrictrace.nothing.v1"}\n' >"$work/broken.ndjson"
clean "fabrictraced replays broken records" 65 daemon/fabrictraced -c /dev/null \
    --topology "$srcdir/tests/golden/daemon/lab/topology.yaml" --replay "$work/broken.ndjson" \
    --sink "file:$work/broken.out"

# Daemon, poller and agent on loopback TCP, ended by SIGTERM: each exit status is checked there.
FT_WRAP="${valgrind[*]}" "$srcdir/tests/golden/daemon/live.py" >"$work/err" 2>&1
verdict "the programs live: reload, broken input, a daemon that restarts" 0 $?
while read -r line; do
    echo "$line"
    skipped=$((skipped + 1))
done < <(grep '^skipped: ' "$work/err")

clean "fabrictrace --loads" 0 cli/fabrictrace imbalance --loads 7,5,3,1

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
