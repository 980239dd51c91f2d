#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Lints everything but the logic of the C: shell scripts, manual pages, the systemd units, the example
# configurations, the words of texts, and the form of the C. One line for each file that fails, then
# "N passed, N failed, N skipped".
#
# usage: packaging/lint.sh SRCDIR BUILDDIR
set -u
srcdir=$1
builddir=$2

# systemd's own measure, 0 (safe) to 10. The agent holds a capability and sees other users' processes.
exposure_max()
{
    case $1 in
        fabrictrace-agent.service) echo 1.9 ;;
        *) echo 1.5 ;;
    esac
}

passed=0
failed=0

# Runs a command; its output is the complaint.
judge()
{
    local what=$1 out
    shift
    if out=$("$@" 2>&1) && [ -z "$out" ]; then
        passed=$((passed + 1))
    else
        printf '%s\n%s\n' "$what:" "$out"
        failed=$((failed + 1))
    fi
}

needs()
{
    command -v "$1" >/dev/null && return
    echo "FAIL $2: $1 is not installed: packaging/install-deps test"
    failed=$((failed + 1))
    return 1
}

files()
{
    # What autotools and compilers make is not ours.
    (cd "$srcdir" && find . \( -path './build*' -o -path ./.git -o -path ./autom4te.cache -o \
        -name node_modules \) -prune \
        -o -type f ! -name 'configure*' ! -path ./config.status "$@" -print | sed 's,^\./,,' | sort)
}

is_shell() { head -n 1 "$srcdir/$1" | grep -qE '^#!.*[/ ](ba)?sh$'; }

page() # [level]
{
    # mandoc looks for the pages referred to on this system, where they are not installed yet.
    ! mandoc -Tlint -W"${2:-style}" "$1" | grep -v "referenced manual not found"
}

# Whether a program has nothing to say of any of the files; some at a time, on all processors.
content() # PROGRAM [OPTION...] < FILES
{
    local out
    out=$(cd "$srcdir" && xargs -r -d '\n' -n 100 -P "$(nproc)" "$@" 2>&1) && [ -z "$out" ]
}

# Quiet where the program is content.
accepts()
{
    local out
    out=$("$@" 2>&1) || {
        echo "$out"
        return 1
    }
}

unit()
{
    local name=${1##*/} root=$2 exposure max
    max=$(exposure_max "$name")
    systemd-analyze verify --man=no --recursive-errors=no --root="$root" "$name" || return 1
    [[ $name = *.service ]] || return 0
    exposure=$(systemd-analyze security --offline=yes --root="$root" --no-pager "$name" |
        sed -nE 's/.*exposure level for .*: ([0-9.]+) .*/\1/p')
    awk -v e="$exposure" -v max="$max" 'BEGIN { exit !(e != "" && e <= max) }' ||
        echo "exposure ${exposure:-unknown} is above $max"
}

# Units are judged where they will be: in a root of their own with the programs beside them.
units()
{
    local root bin file
    root=$(mktemp -d) || return
    mkdir -p "$root/lib/systemd/system" "$root/etc" "$root/bin"
    printf 'root:x:0:0::/:/bin/sh\nfabrictrace:x:999:999::/:/bin/sh\n' >"$root/etc/passwd"
    printf 'root:x:0:\nfabrictrace:x:999:\n' >"$root/etc/group"
    cp /lib/systemd/system/{basic,sysinit,multi-user,shutdown,network-online,network}.target \
        /lib/systemd/system/{-.slice,system.slice} "$root/lib/systemd/system/" 2>/dev/null
    for file in "$builddir"/packaging/systemd/*.service; do
        bin=$(sed -nE 's/^ExecStart=([^ ]+).*/\1/p' "$file")
        mkdir -p "$root/${bin%/*}"
        cp /bin/true "$root/$bin"
        cp /bin/kill "$root/bin/kill"
    done
    cp "$builddir"/packaging/systemd/*.{service,socket} "$root/lib/systemd/system/"
    for file in "$builddir"/packaging/systemd/*.{service,socket}; do
        judge "${file##*/}" unit "$file" "$root"
    done
    rm -rf "$root"
}

if needs shellcheck "shell scripts"; then
    while read -r file; do
        ! is_shell "$file" || judge "$file" shellcheck "$srcdir/$file"
    done < <(files \( -name '*.sh' -o ! -name '*.*' -o -path './.ci/*' \))
fi
if needs mandoc "manual pages"; then
    while read -r file; do
        judge "$file" page "$srcdir/$file"
    done < <(files -path './man/*' -name '*.[1578]')
    for file in "$builddir"/man/*.[57]; do
        [ -e "$file" ] || continue
        # Long lines of its source are the generator's.
        judge "man/${file##*/}" page "$file" warning
    done
fi
if needs python3 "words"; then
    judge "words" python3 "$srcdir/packaging/check_words.py" "$srcdir"
fi
if needs clang-format "form of the C"; then
    mapfile -t sources < <(files -name '*.[ch]' ! -name '*.pb-c.[ch]')
    # It takes longer to start than to read a file. Where it complains of one of many, each is judged by itself.
    if printf '%s\n' "${sources[@]}" | content clang-format --dry-run -Werror; then
        passed=$((passed + ${#sources[@]}))
    else
        for file in "${sources[@]}"; do
            judge "$file" clang-format --dry-run -Werror "$srcdir/$file"
        done
    fi
fi
if needs systemd-analyze "systemd units"; then
    units
fi
# What configure found, the programs were built with.
fortified() { nm -D "$1" | grep -q '_chk@' || echo "no function of it is checked by _FORTIFY_SOURCE"; }

# What no build leaves out: loaded anywhere, its tables of addresses read-only once that is done, no stack
# that can be executed, a canary below return addresses, nothing looked for in folders of its own.
hardened()
{
    local dynamic segments
    dynamic=$(readelf -dW "$1") && segments=$(readelf -hlW "$1") || return
    grep -qE '^ *Type: +DYN ' <<<"$segments" || echo "it is not loaded at any address"
    grep -q ' GNU_RELRO ' <<<"$segments" || echo "no RELRO"
    grep -qE '\(BIND_NOW\)|\(FLAGS(_1)?\).*NOW' <<<"$dynamic" || echo "functions are bound late"
    grep -qE ' GNU_STACK .* RW ' <<<"$segments" || echo "its stack can be executed"
    ! grep -qE ' LOAD .* (RWE|WE) ' <<<"$segments" || echo "a segment can be written and executed"
    ! grep -qE '\((TEXTREL|RPATH|RUNPATH)\)' <<<"$dynamic" || echo "TEXTREL, RPATH or RUNPATH"
    readelf --dyn-syms -W "$1" | grep -q ' __stack_chk_fail@' || echo "no stack protector"
}
make_value() { sed -n "s/^$1 = //p" "$builddir/Makefile"; }

# Level 3 checks sizes that are known at run time alone. Where the compiler has it, the flags that programs are
# built with give it.
checks_sizes() # COMPILER FLAG...
{
    printf '%s\n' '#include <stdlib.h>' '#include <string.h>' \
        'void *f(size_t n, size_t m); void *f(size_t n, size_t m) { void *p = malloc(n); return memset(p, 0, m); }' |
        "$@" -x c -S -o - - 2>/dev/null | grep -q '__memset_chk'
}
fortify_level()
{
    local cc flags
    read -ra cc <<<"$(make_value CC)"
    read -ra flags <<<"$(make_value CFLAGS) $(make_value HARDEN_FLAGS)"
    ! checks_sizes "${cc[@]}" -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 || checks_sizes "${cc[@]}" "${flags[@]}" ||
        echo "${cc[*]} has level 3 of _FORTIFY_SOURCE, programs are built with: ${flags[*]}"
}
programs=("$builddir"/*/fabrictrace-agent "$builddir"/*/fabrictraced "$builddir"/*/fabrictrace-switchpoll
    "$builddir"/cli/fabrictrace)
shared=("$builddir"/agent/nccl/libnccl-profiler-fabrictrace.so)
# The wrap is built where there is libibverbs.
grep -q '^HAVE_VERBS_TRUE = *#' "$builddir/Makefile" || shared+=("$builddir"/agent/shim/libibverbs.so)
if [ "$(make_value SANITIZED)$(make_value COVERAGE)" = 0no ] && needs nm "_FORTIFY_SOURCE"; then
    judge "level of _FORTIFY_SOURCE" fortify_level
    for program in "${programs[@]}"; do
        judge "$program" fortified "$program"
    done
fi
if needs readelf "hardening"; then
    for program in "${programs[@]}" "${shared[@]}"; do
        judge "$program" hardened "$program"
    done
fi
# The example of a daemon is one that it accepts.
for file in "$srcdir"/packaging/examples/fabrictrace*.yaml; do
    sets=()
    # The folder of its sink is there only where the unit has run.
    [ "${file##*/}" != fabrictraced.yaml ] || sets=(--sink file:-)
    for program in "$builddir"/*/"$(basename "$file" .yaml)"; do
        [ ! -x "$program" ] ||
            judge "packaging/examples/${file##*/}" accepts "$program" --check -c "$file" "${sets[@]}"
    done
done

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
