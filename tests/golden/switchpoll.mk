# SPDX-License-Identifier: Apache-2.0
switchpoll_scripts = tests/golden/switchpoll/replay.py tests/golden/switchpoll/live.py
TESTS += $(switchpoll_scripts)
EXTRA_DIST += $(switchpoll_scripts) tests/golden/switchpoll/make_captures.py \
	tests/golden/switchpoll/fabric.pcap tests/golden/switchpoll/fabric.ndjson \
	tests/golden/switchpoll/ovs.pcap tests/golden/switchpoll/ovs.ndjson \
	tests/golden/switchpoll/ovs_lacp.pcap tests/golden/switchpoll/ovs_lacp.ndjson
