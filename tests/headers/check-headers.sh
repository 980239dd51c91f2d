#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make check-headers: the layers of HACKING.md hold. Each header compiles alone and has its guard;
# each source includes downward only, third-party headers appear in their adapter alone, every file
# says its licence and none is too long.
#
# usage: check-headers.sh SRCDIR    with CC and CPPFLAGS in the environment, run in the build folder
set -uf

srcdir=$1
CC=${CC:-cc}
CPPFLAGS=${CPPFLAGS:-}
lines_max=600

# layer: what it may include besides itself (and the C library)
declare -A below=(
    [lib/base]=""
    [lib/config]="lib/base"
    [lib/fabric]="lib/base"
    [lib/diagnosis]="lib/base proto"
    [lib/sim]="lib/base lib/fabric"
    [lib/files]="lib/base lib/config lib/fabric lib/sim"
    [lib/whatif]="lib/base lib/fabric lib/files lib/sim proto"
    [lib/io]="lib/base"
    [proto]="lib/base"
    [lib/topics]="lib/base lib/config lib/io proto"
    [agent]="lib/base lib/config lib/diagnosis lib/fabric lib/io lib/topics proto"
    [switchpoll]="lib/base lib/config lib/fabric lib/io lib/topics proto"
    [daemon]="lib/base lib/config lib/diagnosis lib/fabric lib/files lib/io lib/sim lib/topics lib/whatif proto"
    [cli]="lib/base lib/config lib/diagnosis lib/fabric lib/files lib/io lib/sim lib/whatif proto"
)

# third-party header (pattern): files that may include it (patterns)
third_party=(
    "event2/*        lib/io/*.c lib/io/*/*.c"
    "net-snmp/*      lib/io/snmp/*.c"
    "librdkafka/*    lib/io/kafka/*.c"
    "curl/*          lib/io/http/web_client.c"
    "openssl/*       lib/io/transport/tls.c lib/io/http/tls_client.c"
    "pcap.h          lib/io/capture/*.c"
    "zlib.h          lib/io/disk/unpack.c lib/io/http/gzip.c"
    "zstd.h          lib/io/disk/unpack.c lib/io/disk/pack.c"
    "pcap/*          lib/io/capture/*.c"
    "libmnl/*        lib/io/netlink*.c"
    "infiniband/*    lib/io/verbs.c agent/shim/shim.c"
    "systemd/*       lib/io/notify.c lib/io/journal.c"
    "curses.h        cli/top/top_screen.c"
    "term.h          cli/top/top_screen.c"
    "yaml.h          lib/config/yaml*.c"
    "xxhash.h        lib/base/*.c"
    "jansson.h       proto/json*.c cli/output/answer.c lib/io/kafka/stats.c lib/io/kafka/registry*.c"
    "protobuf-c/*    proto/*"
)

# what the C library and the kernel give
system='@(assert|ctype|dirent|dlfcn|endian|err|errno|fcntl|float|fnmatch|getopt|glob|grp|ifaddrs|inttypes|langinfo|limits|locale|math|netdb|paths|poll|pthread|pwd|sched|search|semaphore|signal|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings|sysexits|syslog|termios|threads|time|ucontext|unistd|wchar).h'
shopt -s extglob

bad=0

complain()
{
    echo "$*" >&2
    bad=1
}

layer_of()
{
    local rest=${1#lib/}
    if [ "$rest" = "$1" ]; then
        echo "${1%%/*}"
    else
        echo "lib/${rest%%/*}"
    fi
}

check_arrow()
{
    local file=$1 from to
    from=$(layer_of "$1")
    to=$(layer_of "$2")
    [ "$2" = config.h ] && return
    [[ -v below[$to] ]] || { complain "$file: includes \"$2\", which is in no layer"; return; }
    [ "$from" = "$to" ] && return
    case " ${below[$from]} " in
    *" $to "*) ;;
    *) complain "$file: $from/ must not include \"$2\"" ;;
    esac
}

check_third_party()
{
    local file=$1 header=$2 row pattern users user
    # shellcheck disable=SC2254 # patterns are meant
    case $header in
    $system | sys/* | net/* | netinet/* | netpacket/* | arpa/* | linux/* | rdma/* | asm/*) return ;;
    esac
    for row in "${third_party[@]}"; do
        read -r pattern users <<<"$row"
        # shellcheck disable=SC2254
        case $header in
        $pattern) ;;
        *) continue ;;
        esac
        for user in $users; do
            # shellcheck disable=SC2254
            case $file in
            $user) return ;;
            esac
        done
        complain "$file: <$header> belongs in $users alone"
        return
    done
    complain "$file: <$header> is not in the table of tests/headers/check-headers.sh"
}

check_includes()
{
    local file=$1 kind name first=1 own=${1%.c}.h
    local want_own=0
    [[ $file = *.c && -e $srcdir/$own ]] && want_own=1
    while read -r kind name; do
        if [[ $file = *.c && $first = 1 && $name != config.h ]]; then
            complain "$file: the first include is not \"config.h\""
        elif [[ $first = 2 && $want_own = 1 && $name != "$own" ]]; then
            complain "$file: the second include is not \"$own\""
        fi
        first=$((first + 1))
        if [ "$kind" = '"' ]; then
            check_arrow "$file" "$name"
        else
            check_third_party "$file" "$name"
        fi
    done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*(["<])([^">]+)[">].*/\1 \2/p' \
        "$srcdir/$file")
}

check_guard()
{
    local file=$1 guard
    guard=${file#lib/}
    guard=FT_$(tr 'a-z/.-' 'A-Z___' <<<"$guard")
    if ! grep -qx "#ifndef $guard" "$srcdir/$file" || ! grep -qx "#define $guard" "$srcdir/$file"; then
        complain "$file: lacks the include guard $guard"
    fi
}

check_alone()
{
    # shellcheck disable=SC2086 # flags are words
    $CC $CPPFLAGS -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -x c "$srcdir/$1" ||
        complain "$1: does not compile alone"
}

check_file()
{
    local file=$1 head
    head=$(head -n 2 "$srcdir/$file")
    grep -q "SPDX-License-Identifier: Apache-2.0" <<<"$head" ||
        complain "$file: lacks the SPDX line"
    # The contract is one file, most of it comments.
    [[ $file = *.proto ]] || [ "$(wc -l <"$srcdir/$file")" -le "$lines_max" ] ||
        complain "$file: is over $lines_max lines"
    case $file in
    tests/*) return ;;
    *.h) check_guard "$file" && check_alone "$file" && check_includes "$file" ;;
    *.c) check_includes "$file" ;;
    esac
}

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
(cd "$srcdir" && find lib proto agent switchpoll daemon cli tests packaging man page \
    \( -name node_modules -o -path page/tests/out -o -path page/dist \) -prune -o -type f \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.mk' -o -name '*.proto' -o \
    -name '*.ts' -o -name '*.tsx' -o -name '*.mjs' -o -name '*.css' \) \
    ! -name '*.pb-c.[ch]' ! -name page_files.c -print | sort) >"$work/files"

# One of some processes, each of which takes every so many-th file. A row a file: its verdict and name.
check_share() # NUMBER OF
{
    local file
    while read -r file; do
        bad=0
        check_file "$file"
        echo "$bad $file"
    done < <(awk -v i="$1" -v n="$2" 'NR % n == i' "$work/files")
}

shares=$(nproc)
for ((i = 0; i < shares; i++)); do
    check_share "$i" "$shares" >"$work/judged.$i" 2>"$work/complaints.$i" &
done
wait
passed=0
for ((i = 0; i < shares; i++)); do
    cat "$work/complaints.$i" >&2
    passed=$((passed + $(grep -c '^0 ' "$work/judged.$i")))
done
# A file of which a process that ended early said nothing has failed.
failed=$(($(wc -l <"$work/files") - passed))

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
