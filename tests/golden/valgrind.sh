#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The main paths under valgrind: no leak, no use of what was never written or already freed. Runs in
# the build folder. Ends with "N passed, N failed, N skipped"; 77 without valgrind.
#
# usage: valgrind.sh SRCDIR
set -u

srcdir=$1
if ! command -v valgrind >/dev/null; then
    echo "skipped: valgrind is not installed"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# Runs a command line; what valgrind finds, or another exit status, is a failure.
clean()
{
    local what=$1 expected=$2 rc
    shift 2
    valgrind -q --error-exitcode=99 --leak-check=full \
        --show-leak-kinds=definite,indirect,possible \
        --errors-for-leak-kinds=definite,indirect,possible --num-callers=24 \
        "$@" >"$work/out" 2>"$work/err"
    rc=$?
    if [ $rc -eq "$expected" ]; then
        passed=$((passed + 1))
        echo "ok    $what"
    else
        failed=$((failed + 1))
        echo "FAIL  $what (exit status $rc)"
        tail -n 60 "$work/err" | sed 's/^/      | /'
    fi
}

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
    case $capture in
    */agent/*)
        clean "agent replays $name" 0 agent/fabrictrace-agent -c /dev/null \
            --replay "$capture" --output "$work/agent.ndjson"
        ;;
    *)
        clean "switchpoll replays $name" 0 switchpoll/fabrictrace-switchpoll -c /dev/null \
            --replay "$capture" --output "$work/$name.ndjson"
        clean "fabrictraced replays the records of $name" 0 daemon/fabrictraced -c /dev/null \
            --topology "$srcdir/packaging/examples/topology.yaml" \
            --replay "$work/$name.ndjson" --sink "file:$work/$name.out"
        ;;
    esac
done < <(find "$srcdir/tests/golden" -name '*.pcap' -o -name '*.pcapng' | sort)
if [ $captures -eq 0 ]; then
    echo "FAIL  there is no capture in $srcdir/tests/golden"
    failed=$((failed + 1))
fi

clean "fabrictrace --loads" 0 cli/fabrictrace imbalance --loads 7,5,3,1

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
