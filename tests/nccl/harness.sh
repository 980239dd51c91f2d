#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The plugin under everything: as built, then compiled anew with ThreadSanitizer, with
# AddressSanitizer and UBSan, then under valgrind; and what strace sees of its hot path.
#
# usage: harness.sh    in the build folder, srcdir and CC in the environment
set -u
srcdir=${srcdir:-.}
CC=${CC:-cc}
plugin=agent/nccl/libnccl-profiler-fabrictrace.so
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

report() # NAME STATUS
{
    if [ "$2" = 0 ]; then
        echo "ok: $1"
    else
        echo "FAILED: $1"
        failed=1
    fi
}

# Sanitizers abort where they cannot work at all (address space, ptrace): that is no finding.
works()
{
    echo 'int main(void) { return 0; }' >"$folder/probe.c"
    # shellcheck disable=SC2086 # flags are words
    $CC $1 "$folder/probe.c" -o "$folder/probe" 2>/dev/null && "$folder/probe" 2>/dev/null
}

sanitized() # NAME FLAGS
{
    local common="-std=gnu11 -g -O1 -pthread -I. -I$srcdir $2"
    local define='-DFT_RUNSTATEDIR="/run/fabrictrace"'
    if ! works "$2"; then
        echo "FAILED: $1: $CC $2 gives no program that runs here"
        failed=1
        return
    fi
    # shellcheck disable=SC2086
    $CC $common "$define" -fPIC -fvisibility=hidden -shared -Wl,-z,nodelete \
        "$srcdir"/agent/nccl/*.c -o "$folder/plugin.so" &&
        $CC $common "$srcdir"/tests/nccl/{harness,driver,reader}.c \
            "$srcdir"/agent/jobs/{rings,collectives,peer_list}.c "$srcdir"/lib/base/{table,clock}.c \
            -lxxhash -ldl -o "$folder/harness" &&
        TSAN_OPTIONS=die_after_fork=0 timeout 900 "$folder/harness" "$folder/plugin.so" 50 &&
        TSAN_OPTIONS=die_after_fork=0 timeout 300 "$folder/harness" "$folder/plugin.so" chain \
            "$PWD/tests/nccl/counting.so"
    report "$1" $?
}

quiet()
{
    if ! strace -o "$folder/trace" true 2>/dev/null; then
        echo "FAILED: no system call on the hot path: strace does not work here: packaging/install-deps test"
        failed=1
        return
    fi
    # LeakSanitizer cannot look while strace does.
    ASAN_OPTIONS=detect_leaks=0 strace -f -o "$folder/trace" tests/bench/bench_nccl "$plugin" --quiet
    # The process's own thread is the one that marks. The end of a call is no call: that of the mark
    # itself comes on a line of its own when another thread's call came between.
    awk '/steady begins/ { own = $1; on = 1; next }
         /steady ends/ { ends++; on = 0 }
         on && $1 == own && !/ resumed>/ && calls++ < 5
         END { exit !(ends == 1 && calls == 0) }' "$folder/trace"
    report "no system call on the hot path" $?
}

symbols=$(nm -D --defined-only "$plugin" | awk '{ print $NF }' | sort | tr '\n' ' ')
[ "$symbols" = "ncclProfiler_v4 ncclProfiler_v5 ncclProfiler_v6 " ]
report "exports ncclProfiler_v4, v5, v6 alone" $?
timeout 600 tests/nccl/harness "$plugin"
report "as built" $?
timeout 300 tests/nccl/harness "$plugin" chain "$PWD/tests/nccl/counting.so"
report "another plugin behind it" $?
timeout 300 env FABRICTRACE_NCCL_CHAIN="$PWD/$plugin" tests/nccl/harness "$plugin" 20 >/dev/null
report "itself behind it is refused" $?
sanitized "ThreadSanitizer" "-fsanitize=thread -Wno-tsan"
sanitized "AddressSanitizer, UBSan" "-fsanitize=address,undefined -fno-sanitize-recover=all"
if ldd tests/nccl/harness | grep -q asan; then
    echo "not under valgrind: this build has AddressSanitizer"
elif command -v valgrind >/dev/null; then
    timeout 1200 valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
        --fair-sched=yes tests/nccl/harness "$plugin" 20
    report "valgrind" $?
else
    echo "FAILED: valgrind is not installed: packaging/install-deps test"
    failed=1
fi
quiet
exit $failed
