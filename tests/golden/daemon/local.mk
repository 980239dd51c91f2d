# SPDX-License-Identifier: Apache-2.0
daemon_goldens = tests/golden/daemon/replay.py tests/golden/daemon/badinput.py \
	tests/golden/daemon/live.py tests/golden/daemon/discovery.py \
	tests/golden/daemon/crossings.py tests/golden/daemon/blame.py \
	tests/golden/daemon/lag.py tests/golden/daemon/pairing.py \
	tests/golden/daemon/networks.py tests/golden/daemon/tunnel.py tests/golden/daemon/usid.py \
	tests/golden/daemon/blind.py tests/golden/daemon/portdown.py \
	tests/golden/daemon/detour.py tests/golden/daemon/identity.py \
	tests/golden/daemon/connection.py tests/golden/daemon/checks.py \
	tests/golden/daemon/privilege.py tests/golden/daemon/memory.py tests/golden/daemon/schemas.py tests/golden/daemon/api.py \
	tests/golden/daemon/follow.py tests/golden/daemon/group.py tests/golden/daemon/begin.py tests/golden/daemon/analyze.py \
	tests/golden/daemon/remote.py tests/golden/daemon/datagrams.py tests/golden/daemon/polarised.py tests/golden/daemon/sprayed.py tests/golden/daemon/hashed_qp.py tests/golden/daemon/hashes.py tests/golden/daemon/outer.py \
	tests/golden/daemon/parts.py tests/golden/daemon/inference.py \
	tests/golden/daemon/spread.py tests/golden/daemon/tiers.py \
	tests/golden/daemon/incident.py tests/golden/daemon/api_random.py \
	tests/golden/daemon/standby.py tests/golden/daemon/behind.py \
	tests/golden/daemon/scheduler.py tests/golden/daemon/rhythm.py tests/golden/daemon/held.py tests/golden/daemon/reads.py \
	tests/golden/daemon/hidden.py \
	tests/golden/daemon/lossy.py tests/golden/daemon/brief.py tests/golden/daemon/operations.py tests/golden/daemon/weights.py \
	tests/golden/daemon/printed.py tests/golden/daemon/reach.py tests/golden/daemon/wide.py
TESTS += $(daemon_goldens)
EXTRA_DIST += $(daemon_goldens) tests/golden/daemon/capture.py tests/golden/daemon/fabrics.py tests/golden/daemon/rig.py \
	tests/golden/daemon/sflow.py tests/golden/daemon/sampled.py tests/golden/daemon/lab/analyze.txt \
	tests/golden/daemon/lab/expected.ndjson \
	tests/golden/daemon/lab/sflow.pcap tests/golden/daemon/lab/topology.yaml \
	tests/golden/daemon/lab/truth.json
