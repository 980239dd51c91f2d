#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Looks at the C without running it: every warning that clang has but for those below, clang-tidy with the
# profile in .clang-tidy, cppcheck, gcc's analyzer, musl's headers. One line for each source that fails, then
# "N passed, N failed, N skipped".
#
# usage: packaging/static.sh SRCDIR BUILDDIR [clang|tidy|cppcheck|analyzer|musl]...    after `make`: with its generated headers
set -u
srcdir=$(cd "$1" && pwd)
builddir=$(cd "$2" && pwd)
shift 2
[ $# -gt 0 ] || set -- clang tidy cppcheck analyzer musl

# What -Weverything has and we do not follow, and why.
without=(
    padded reserved-macro-identifier reserved-identifier # layout is the ABI's; system headers
    used-but-marked-unused disabled-macro-expansion gnu-statement-expression gnu-zero-variadic-macro-arguments
    gnu-designator # ranges of characters
    extra-semi-stmt # macros of system headers that bring their own
    bad-function-cast # (int)round(x)
    atomic-implicit-seq-cst # meant where no order is written
    cast-qual cast-align # containers by their first member; libraries without const
    switch-enum covered-switch-default # a default for what peers may send, beside all we know
    float-equal double-promotion # sums of counts; INFINITY and NAN are float
    conditional-uninitialized # flow that it does not follow: set where the call returned 0
    assign-enum # {0}
    declaration-after-statement unsafe-buffer-usage c++98-compat
)

# What gcc 12's -fanalyzer is wrong about here, by those of its findings that were looked at: it does not follow
# what a structure owns that an argument points to, nor lists of queue(3), nor that a call which returned 0 has set
# its result, or that a pointer was compared to NULL together with something else.
not_analyzed=(malloc-leak null-dereference null-argument possible-null-argument use-of-uninitialized-value
    double-free possible-null-dereference)

passed=0
failed=0
jobs=$(nproc)

# What it says when it makes itself anew is no flag.
make -s -C "$builddir" Makefile >/dev/null || exit 1
flags=()
# shellcheck disable=SC2016 # make expands them
while read -r word; do
    flags+=("$word")
done < <(make -s -C "$builddir" -f Makefile -f - print-flags <<<'print-flags:
	@printf "%s\n" $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(places) $(LIBEVENT_CFLAGS) $(PROTOBUFC_CFLAGS)')
flags=(-std=gnu11 "${flags[@]}")

needs()
{
    command -v "$1" >/dev/null && return
    echo "FAIL $1: it is not installed: packaging/install-deps test"
    failed=$((failed + 1))
    return 1
}

sources()
{
    (cd "$srcdir" && find agent cli daemon lib proto switchpoll -name '*.c' ! -name '*.pb-c.c' ! -name page_files.c |
        sort)
}

# each WHAT COMMAND...: the command for every source, several at a time; what it prints is the complaint.
each()
{
    local what=$1 folder file
    shift
    folder=$(mktemp -d) || exit 1
    # shellcheck disable=SC2016 # the shell inside expands them
    sources | (cd "$builddir" && xargs -P "$jobs" -I{} bash -c \
        'out=$1/$(tr / + <<<"$2"); shift 2; "$@" >"$out" 2>&1' - "$folder" {} "$@")
    for file in "$folder"/*; do
        if [ -s "$file" ]; then
            failed=$((failed + 1))
            printf '%s %s:\n' "$what" "$(basename "$file" | tr + /)"
            head -n 40 "$file"
        else
            passed=$((passed + 1))
        fi
    done
    rm -rf "$folder"
}

for tool; do
    case $tool in
    clang) needs clang && each clang clang "${flags[@]}" -Weverything -Wno-unknown-warning-option \
        "${without[@]/#/-Wno-}" -fsyntax-only "$srcdir/{}" ;;
    tidy)
        # How many warnings of system headers there were goes to stderr.
        # shellcheck disable=SC2016 # the shell inside expands them
        needs clang-tidy && each clang-tidy bash -c 'clang-tidy --quiet "$@" 2>/dev/null' - "$srcdir/{}" -- "${flags[@]}"
        ;;
    cppcheck)
        needs cppcheck && each cppcheck cppcheck -q --std=c11 --enable=warning,performance,portability \
            --suppressions-list="$srcdir/packaging/cppcheck.txt" --template='{file}:{line}: {id}: {message}' "$srcdir/{}"
        ;;
    analyzer) needs gcc && each analyzer gcc "${flags[@]}" -O1 -fanalyzer "${not_analyzed[@]/#/-Wno-analyzer-}" \
        -fdiagnostics-plain-output -S -o /dev/null "$srcdir/{}" ;;
    musl)
        # Other libraries are those that there are here, for glibc: nothing is linked. Versions of symbols, which
        # the shim asks for, are glibc's alone.
        # shellcheck disable=SC2016 # the shell inside expands them
        needs musl-gcc && each musl bash -c '[[ $0 = */agent/shim/* ]] || exec musl-gcc "$@" "$0"' "$srcdir/{}" \
            "${flags[@]}" -Wall -Wextra -idirafter /usr/include -idirafter "/usr/include/$(gcc -print-multiarch)" \
            -fsyntax-only
        ;;
    *)
        echo "$0: there is no '$tool'" >&2
        exit 64
        ;;
    esac
done

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
