#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What run.sh does in the Debian that it made. Ends with "N passed, N failed, N skipped".
#
# usage: inside.sh SRCDIR
set -u
srcdir=$1
build=$srcdir/build/arm64
qemu=(qemu-aarch64-static -L /)
programs=(agent/fabrictrace-agent cli/fabrictrace daemon/fabrictraced daemon/api/print_openapi
    switchpoll/fabrictrace-switchpoll)
passed=0
failed=0
# An emulated program takes several times as long.
FT_SLOWNESS=$(awk -v s="${FT_SLOWNESS:-1}" 'BEGIN { print 5 * (s > 1 ? s : 1) }')
CK_TIMEOUT_MULTIPLIER=20
# What qemu's user emulation does otherwise than the kernel: vfork(2) is a fork(2), so that who starts a
# program does not hear that there is none; /proc/self/stat is its own, and says neither state nor memory;
# there is no process_vm_readv(2), and no SO_MEMINFO.
without=(what_cannot_be_started_is_refused the_kernel_says_how_a_process_is a_process_as_the_kernel_tells
    who_may_trace_reads_the_environment what_was_sent_is_taken_or_counted_as_dropped)
CK_EXCLUDE_TAGS="${without[*]}"
export srcdir FT_SLOWNESS CK_TIMEOUT_MULTIPLIER CK_EXCLUDE_TAGS

verdict() # WHAT STATUS [LOG]
{
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok    $1"
    else
        failed=$((failed + 1))
        echo "FAIL  $1 (exit status $2)"
        [ -z "${3:-}" ] || tail -n 40 "$3" | sed 's/^/      | /'
    fi
}

build()
{
    local program
    cd "$srcdir" && autoreconf -i >autoreconf.log 2>&1 || return
    mkdir -p "$build" && cd "$build" || return
    # A shared library that is found there is of this machine, not of arm64.
    export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig
    [ -e Makefile ] || "$srcdir/configure" -q --host=aarch64-linux-gnu --enable-werror --with-kafka \
        --with-snmp --with-verbs --with-systemd --without-page || return
    # Manual pages are made by asking the programs. Only `all` and `check` make first what is included.
    make -s proto/fabrictrace.pb-c.h && make -s -j"$JOBS" "${programs[@]}" || return
    is_arm64 daemon/fabrictraced.arm64 || is_arm64 daemon/fabrictraced || return
    for program in "${programs[@]}"; do
        wrap "$program" || return
    done
    make -s -j"$JOBS" && make -s -j"$JOBS" check TESTS=
}
is_arm64() { [ -e "$1" ] && [ "$(od -An -tx1 -j18 -N2 "$1")" = " b7 00" ]; }

# A file of that name which runs the program that was compiled. Tests start programs by name.
wrap() # PROGRAM
{
    if [ "$(head -c 2 "$1")" != '#!' ]; then
        mv "$1" "$1.arm64" || return
    fi
    # shellcheck disable=SC2016 # of the script that is written
    printf '#!/bin/sh\nexec %s -0 "$0" %q "$@"\n' "${qemu[*]}" "$PWD/$1.arm64" >"$1" && chmod +x "$1"
}

unit_tests()
{
    local tests
    tests=$(find tests/unit -maxdepth 1 -name 'check_*' -type f -executable ! -name '*.*' | sort | tr '\n' ' ')
    [ "$(wc -w <<<"$tests")" -gt 100 ] || return 1
    find tests -name '*.log' -delete
    make -s -j"$JOBS" check LOG_COMPILER="${qemu[*]}" TESTS="$tests" >unit.log 2>&1
}

plugin()
{
    local library=agent/nccl/libnccl-profiler-fabrictrace.so
    timeout 1800 "${qemu[@]}" tests/nccl/harness "$library" 50 >plugin.log 2>&1
    verdict "the plugin's harness" $? plugin.log
    timeout 900 "${qemu[@]}" tests/nccl/harness "$library" chain "$PWD/tests/nccl/counting.so" >plugin.log 2>&1
    verdict "another plugin behind it" $? plugin.log
    "$srcdir/tests/arm64/fences.py" "$library" agent/jobs/rings.o >plugin.log 2>&1
    verdict "the sequence locks have their fences" $? plugin.log
}

# Those that only replay, and say the same on every machine.
goldens()
{
    local test
    for test in agent/replay daemon/replay daemon/discovery; do
        timeout 1800 "$srcdir/tests/golden/$test.py" >golden.log 2>&1
        verdict "golden $test" $? golden.log
    done
}

if ! build; then
    echo "FAIL  it does not compile for arm64"
    exit 1
fi
verdict "compiled for arm64, warnings are errors" 0
unit_tests
verdict "unit tests" $? unit.log
grep -E '^# (TOTAL|PASS|FAIL|ERROR)|^(FAIL|ERROR):' unit.log
plugin
goldens
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
