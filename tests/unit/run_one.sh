#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# One test of a unit test program can be run alone, by its name, and a name that no test has is a
# failure instead of no test at all.
set -u
program=tests/unit/check_text
failed=0

expect() # WHAT STATUS PATTERN CASE
{
    local out rc
    out=$(CK_RUN_CASE=$4 $program 2>&1)
    rc=$?
    if [ $rc -eq "$2" ] && grep -q "$3" <<<"$out"; then
        echo "ok   $1"
    else
        printf 'FAIL %s: status %s\n%s\n' "$1" $rc "$out"
        failed=1
    fi
}

# The program itself says which tests it has.
mapfile -t names < <(CK_RUN_CASE=no_such_test $program 2>&1 | sed -n 's/^  //p')
if [ ${#names[@]} -lt 2 ]; then
    echo "FAIL $program names its tests: ${names[*]}"
    failed=1
fi
for name in "${names[@]}"; do
    expect "$name alone" 0 'Checks: 1, ' "$name"
done
expect "an unknown name" 1 "no test is named 'no_such_test'" no_such_test
exit $failed
