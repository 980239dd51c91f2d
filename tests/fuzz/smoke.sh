#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of a build folder for a while, two at a time.
# Usage: smoke.sh [-s SECONDS] [-j AT_ONCE] [BUILD_FOLDER]
# New inputs stay out of the tree. Inputs that crash a target are kept and named. Exit: 1 when a
# target failed.
set -u

seconds=30
at_once=2
while getopts s:j: option; do
    case $option in
    s) seconds=$OPTARG ;;
    j) at_once=$OPTARG ;;
    *) sed -n '4s/^# //p' "$0" >&2; exit 64 ;;
    esac
done
shift $((OPTIND - 1))
build=${1:-.}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill $(jobs -rp) 2>/dev/null; rm -rf "$work"; exit 130' INT TERM
mkdir "$work/failed" "$work/result"

run_one() # NAME PROGRAM
{
    local name=$1 program=$2 log=$work/$1.log new=$work/$1.new rc executed rate
    mkdir "$new" "$work/failed/$name"
    "$program" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 \
        -artifact_prefix="$work/failed/$name/" "$new" "$here/corpus/$name" >"$log" 2>&1
    rc=$?
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    if [ $rc -eq 0 ] && [ "${executed:-0}" -gt 0 ]; then
        echo passed >"$work/result/$name"
        echo "PASS fuzz_$name: $executed executions, $rate exec/s"
    else
        echo failed >"$work/result/$name"
        echo "FAIL fuzz_$name: exit status $rc, ${executed:-no} executions; inputs in $work/failed/$name, log $log"
        tail -n 25 "$log" | sed 's/^/    /'
    fi
}

skipped=0
for source in "$here"/fuzz_*.c; do
    name=$(basename "$source" .c)
    name=${name#fuzz_}
    program=$build/tests/fuzz/fuzz_$name
    if [ ! -x "$program" ]; then
        echo "SKIP fuzz_$name: not built (CC=clang configure --enable-fuzzing, make)"
        skipped=$((skipped + 1))
        continue
    fi
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do
        wait -n
    done
    run_one "$name" "$program" &
done
wait
passed=$(grep -lx passed "$work"/result/* 2>/dev/null | wc -l)
failed=$(grep -lx failed "$work"/result/* 2>/dev/null | wc -l)
[ "$failed" -gt 0 ] || rm -rf "$work"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
