#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of a build folder for a while, two at a time.
# Usage: smoke.sh [-s SECONDS] [-j AT_ONCE] [-k FOLDER] [-t NAME,..] [BUILD_FOLDER]
# New inputs stay out of the tree: with -k they are kept, one for each thing reached, in FOLDER/NAME,
# where the next run goes on from; without it they are dropped. -t names the targets to run. Inputs
# that crash a target are kept and named. Exit: 1 when a target failed.
set -u

seconds=30
at_once=2
keep=
only=
while getopts s:j:k:t: option; do
    case $option in
    s) seconds=$OPTARG ;;
    j) at_once=$OPTARG ;;
    k) keep=$OPTARG ;;
    t) only=,$OPTARG, ;;
    *) sed -n '4s/^# //p' "$0" >&2; exit 64 ;;
    esac
done
shift $((OPTIND - 1))
build=${1:-.}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill $(jobs -rp) 2>/dev/null; rm -rf "$work"; exit 130' INT TERM
mkdir "$work/failed" "$work/result"

keep_inputs() # NAME PROGRAM NEW: leaves in FOLDER/NAME what reaches more than the corpus does
{
    local name=$1 program=$2 new=$3 least=$work/$1.least
    mkdir -p "$least" "$keep/$name"
    if ! "$program" -merge=1 -timeout=60 "$least" "$here/corpus/$name" "$new" >"$work/$name.merge" 2>&1; then
        cp "$new"/* "$keep/$name/"
        return
    fi
    # A merge names each input by its hash, those of the corpus too.
    (cd "$here/corpus/$name" && sha1sum -- *) | while read -r hash _; do
        rm -f "$least/$hash"
    done
    rm -rf "${keep:?}/$name"
    mv "$least" "$keep/$name"
}

run_one() # NAME PROGRAM
{
    local name=$1 program=$2 log=$work/$1.log new=$work/$1.new rc executed rate began kept=
    mkdir "$new" "$work/failed/$name"
    [ -z "$keep" ] || cp "$keep/$name"/* "$new" 2>/dev/null
    began=$SECONDS
    "$program" -max_total_time="$seconds" -timeout=60 -print_final_stats=1 \
        -artifact_prefix="$work/failed/$name/" "$new" "$here/corpus/$name" >"$log" 2>&1
    rc=$?
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    began=$((SECONDS - began))
    if [ $rc -eq 0 ] && [ "${executed:-0}" -gt 0 ]; then
        if [ -n "$keep" ]; then
            keep_inputs "$name" "$program" "$new"
            kept=", $(find "$keep/$name" -type f | wc -l) new inputs kept"
        fi
        echo passed >"$work/result/$name"
        echo "PASS fuzz_$name: $executed executions in $began s, $rate exec/s$kept"
    else
        echo failed >"$work/result/$name"
        echo "FAIL fuzz_$name: exit status $rc, ${executed:-no} executions in $began s; inputs in $work/failed/$name, log $log"
        tail -n 25 "$log" | sed 's/^/    /'
    fi
}

for source in "$here"/fuzz_*.c; do
    name=$(basename "$source" .c)
    name=${name#fuzz_}
    program=$build/tests/fuzz/fuzz_$name
    [ -z "$only" ] || [[ $only == *,$name,* ]] || continue
    if [ ! -x "$program" ]; then
        echo "FAIL fuzz_$name: not built (CC=clang configure --enable-fuzzing, make)"
        echo failed >"$work/result/$name"
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
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
