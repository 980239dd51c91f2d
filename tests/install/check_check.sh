#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ./check itself, in a tree of a few files that stand for the tests: what it counts, what it takes for
# a failure, and which steps it runs. Needs srcdir in the environment.
set -u
check=$(cd "${srcdir:-.}" && pwd)/check
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
failed=0

put() # FILE: a program of what is read
{
    mkdir -p "$tree/$(dirname "$1")"
    cat >"$tree/$1"
    chmod +x "$tree/$1"
}

# The programs of a step's own test: prints this and ends so.
says() # FILE STATUS LINE...
{
    local file=$1 status=$2
    shift 2
    { echo '#!/bin/sh' && printf 'echo "%s"\n' "$@" && echo "exit $status"; } | put "$file"
}

# What the tests of `make check` say that they lack, until they run as root.
lacks() # [TEXT]
{
    echo "${1:-}" >"$tree/lacks"
}

# What ./check prints must hold a pattern (extended), and its exit status be this. PATH: a folder of
# programs that come first.
expect() # WHAT STATUS PATTERN STEP... [/PATH]
{
    local what=$1 status=$2 pattern=$3 before='' out rc
    shift 3
    if [[ ${*: -1} == /* ]]; then
        before=${*: -1}:
        set -- "${@:1:$#-1}"
    fi
    out=$(PATH=$before$PATH "$tree/check" "$@" 2>&1)
    rc=$?
    if [ $rc -eq "$status" ] && grep -qE "$pattern" <<<"$out"; then
        echo "ok: $what"
    else
        echo "FAIL: $what: status $rc, not $status, or no '$pattern' in:"
        awk '{ print "    " $0 }' <<<"$out"
        failed=1
    fi
}

cp "$check" "$tree/check"
touch "$tree/configure.ac"
put configure <<'CONFIGURE'
#!/bin/sh
cat >Makefile <<'MAKEFILE'
TESTS = unit
CHECK_LIBS = x
all tests/nccl/job tests/kafka/check_kafka tests/kafka/feeder tests/kafka/producer:
	@:
check:
	@[ -n "$(TESTS)" ] || touch programs
	@[ -z "$(TESTS)" ] || sh ./unit "$(TESTS)"
tests/nccl/job:
	@:
quick-tests:
	@[ ! -e ../../lists-no-tests ] || exit 1
	@echo short
all-tests:
	@echo unit
check-headers:
	@echo "2 passed, 0 failed, 0 skipped"
MAKEFILE
cat >unit <<'UNIT'
mkdir -p tests
read -r lacks <../../lacks
[ -z "$lacks" ] || [ -n "$AS_ROOT" ] || echo "skipped: $lacks" >tests/udp.log
[ -z "$AS_ROOT" ] || rm -f tests/udp.log
# The summary lies across the end of a block of 4 KiB, and a complaint comes when that is written.
[ "$lacks" != noisy ] || {
    rm -f tests/udp.log
    printf '%4089s\n# PASS:  3\n# FAIL:  1\n' ''
    sleep 0.2
    echo "make: *** what make says" >&2
    exit 1
}
[ "$lacks" != others ] || {
    rm -f tests/udp.log
    timeout 60 sh -c 'until [ -e ../check-asan/programs ]; do sleep 0.1; done' || exit 1
}
[ "$1" != short ] || AS_ROOT=1
echo "# PASS:  ${AS_ROOT:-3}"
UNIT
CONFIGURE
says asks/id 0 1000
says asks/sudo 1 no
says asks-not/id 0 1000
put asks-not/chown <<'CHOWN'
#!/bin/sh
[ "$AS_ROOT" = 2 ]
CHOWN
put asks-not/sudo <<'SUDO'
#!/bin/sh
shift
AS_ROOT=2 exec "$@"
SUDO
says root/id 0 0
lacks
says packaging/install-deps 0 "deps: \$*"
says packaging/lint.sh 0 "7 passed, 0 failed, 0 skipped"
says tests/headers/check-headers.sh 0 ""
says tests/gpu/run.py 0 "skipped: no GPU here" "1 passed, 0 failed, 1 skipped"
says tests/plan/run_astra.py 0 "skipped: a real ASTRA-sim" "0 passed, 0 failed, 1 skipped"
says tests/snmp/check_snmp.py 0 "skipped: SNMP: lacks snmpget" "2 passed, 0 failed, 1 skipped"
says tests/rxe/run.py 77 "no guest can be run"
says tests/golden/valgrind.sh 0 "4 passed, 0 failed, 0 skipped"
put tests/faults/run.py <<'FAULTS'
#!/bin/sh
[ "$*" = "--build $PWD --for 1h --kills 3" ] && echo "5 passed, 0 failed, 0 skipped"
FAULTS
says tests/bare/run.sh 0 "bare: steps \$*" "9 passed, 0 failed, 1 skipped"

expect "what passes is counted" 0 '^4 passed, 0 failed, 0 skipped$' valgrind
expect "each step's duration is shown" 0 '^valgrind +ok +4 passed, 0 failed, 0 skipped +[0-9]+:[0-9][0-9]$' valgrind
expect "and that of all" 0 '^in [0-9]+:[0-9][0-9]$' valgrind
expect "without a GPU a test may be skipped" 0 '^1 passed, 0 failed, 1 skipped$' gpu
expect "without a simulator, likewise" 0 '^0 passed, 0 failed, 1 skipped$' astra
expect "without anything else it may not" 1 '^2 passed, 1 failed, 0 skipped$' snmp
expect "what is lacking is named" 1 '^    skipped: SNMP: lacks snmpget$' snmp
lacks noisy
expect "what make complains of does not cut the summary" 1 '^3 passed, 1 failed, 0 skipped$' unit
lacks 'IPv6: has none'
expect "a part that a passing test skipped is a failure" 1 'skipped: tests/udp: IPv6: has none' unit
lacks 'live: needs root'
expect "what needs root fails where sudo asks for a password" 1 'FAIL this step needs root.*sudo asks' \
    unit "$tree/asks"
expect "and runs as root where it does not" 0 '^5 passed, 0 failed, 0 skipped$' unit "$tree/asks-not"
expect "a lab too fails where sudo asks" 1 'FAIL this step needs root' snmp "$tree/asks"
lacks
expect "a step that skips itself fails" 1 '^0 passed, 1 failed, 0 skipped$' rxe
lacks others
expect "the sanitizers' programs are built while the tests before them run" 0 '^6 passed, 0 failed, 0 skipped$' \
    unit sanitizers
lacks

# Each of these waits for the others: they run at once. What they say stays apart.
meets() # FILE NAME OTHERS LINE STATUS
{
    put "$1" <<MEETS
#!/bin/sh
touch "$tree/met.$2"
for other in $3; do
    timeout 60 sh -c "until [ -e $tree/met.\$other ]; do sleep 0.1; done" || exit 1
done
echo "$4"
exit $5
MEETS
}
meets tests/faults/run.py faults "rxe valgrind" "5 passed, 0 failed, 0 skipped" 0
meets tests/rxe/run.py rxe "faults valgrind" "3 passed, 0 failed, 0 skipped" 0
meets tests/golden/valgrind.sh valgrind "faults rxe" "2 passed, 0 failed, 0 skipped" 0
expect "labs, guests and valgrind run at once" 0 '^10 passed, 0 failed, 0 skipped$' faults rxe valgrind "$tree/root"
expect "and are reported one after another" 0 '^rxe +ok +3 passed' faults rxe valgrind "$tree/root"
says tests/snmp/check_snmp.py 1 "FAIL what snmp found" "2 passed, 1 failed, 0 skipped"
expect "what fails beside others fails the run" 1 '^12 passed, 1 failed, 0 skipped$' \
    faults rxe valgrind snmp "$tree/root"
expect "and says why" 1 '^    FAIL what snmp found$' faults rxe valgrind snmp "$tree/root"

expect "quick is named" 0 '^quick: unit headers lint' --list
expect "quick runs neither labs nor guests, nor tests that take long" 0 '^10 passed, 0 failed, 0 skipped$' quick
touch "$tree/lists-no-tests"
expect "and fails where nobody says which these are" 1 '^unit +FAILED' quick
rm "$tree/lists-no-tests"
expect "bare takes the steps after it" 0 '^    bare: steps /.* lint gpu$' bare lint gpu
expect "and may lack a GPU" 0 '^9 passed, 0 failed, 1 skipped$' bare
expect "faults takes how long they last" 0 '^5 passed, 0 failed, 0 skipped$' faults --for 1h --kills 3 "$tree/asks-not"
expect "other steps take no options" 64 "no step '--for'" lint --for 1h
expect "an unknown step is refused" 64 "no step 'nonsense'" nonsense
expect "so it is after bare" 64 "no step 'nonsense'" bare nonsense
exit $failed
