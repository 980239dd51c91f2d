# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest: the leaf-spine with 16 hosts whose agents see the kernel's lists alone, so that
# none knows where its queue pairs send to; all use the same few numbers. The daemon finds their other
# ends by what the switches sample. Then a process is killed.
. ./common.sh
. ./guestfabric.sh
rc=0

look() { /tmp/fabrictrace qps --limit 1000 --json >"$1" 2>>"$out/qps.log"; } # FILE
paired() { look "$out/qps.json" && [ "$(grep -c '"both_hosts"' "$out/qps.json")" -ge "$(<"$plan/ends")" ]; }
# The killed writer's peers end a little later than it: the daemon lists what the kernel does.
gone() # PID
{
    local before
    before=$(in_use)
    rdma -j resource show qp -d >"$out/qp-killed.json"
    look "$out/qps-killed.json" && ! grep -qE "\"pid\": ?$1\b" "$out/qps-killed.json" &&
        [ "$before" -eq "$(in_use)" ] && [ "$before" -eq "$(wc -l <"$out/qps-killed.json")" ]
}

say "kernel $(uname -r)"
load_programs || exit 1
raise_fabric || exit 1
start_exporters || exit 1
start_programs || exit 1
say "programs"
start_captures || exit 1
start_servers || exit 1
start_clients || exit 1
say "$(<"$plan/ends") ends of queue pairs"
rdma -j resource show qp -d >"$out/qp.json"
pause 20
rdma -j resource show qp -d >"$out/qp-later.json"
# What is missing then, the judge says.
until_ paired 60
/tmp/fabrictrace doctor --json >"$out/doctor.json" 2>"$out/doctor.log" ||
    [ $? -eq 1 ] || rc=1 # 1: something is found
now_ms >"$out/stop"
say "flows"
# The writers of one host are killed in the middle of their work.
read -r victim <"$plan/victim"
kill -9 "${clients[rxe_$victim]}"
pause 8
until_ 'gone "${clients[rxe_$victim]}"' 30
say "killed"
end_all || rc=1
cp /tmp/*.pcap /tmp/records.ndjson "$out"/
say "done, $rc"
exit $rc
