# SPDX-License-Identifier: Apache-2.0
noinst_PROGRAMS += tests/bench/bench_decode tests/bench/bench_diagnosis tests/bench/bench_hashes tests/bench/bench_join \
	tests/bench/bench_pairing tests/bench/bench_partials tests/bench/bench_ranks tests/bench/bench_rdma \
	tests/bench/bench_steps tests/bench/count tests/bench/fabric_flood tests/bench/flood

tests_bench_bench_decode_SOURCES = tests/bench/bench_decode.c
tests_bench_bench_decode_LDADD = proto/libftproto.a lib/base/libftbase.a $(PROTOBUFC_LIBS) \
	$(JANSSON_LIBS) $(XXHASH_LIBS)

tests_bench_bench_diagnosis_SOURCES = tests/bench/bench_diagnosis.c
tests_bench_bench_diagnosis_LDADD = $(DAEMON_LIBS)

tests_bench_bench_hashes_SOURCES = tests/bench/bench_hashes.c tests/unit/leafspine.h
tests_bench_bench_hashes_LDADD = $(DAEMON_LIBS)

tests_bench_bench_join_SOURCES = tests/bench/bench_join.c tests/unit/leafspine.h
tests_bench_bench_join_LDADD = $(DAEMON_LIBS)

tests_bench_bench_pairing_SOURCES = tests/bench/bench_pairing.c
tests_bench_bench_pairing_LDADD = $(DAEMON_LIBS)

tests_bench_bench_partials_SOURCES = tests/bench/bench_partials.c tests/unit/leafspine.h
tests_bench_bench_partials_LDADD = $(DAEMON_LIBS)

tests_bench_bench_ranks_SOURCES = tests/bench/bench_ranks.c
tests_bench_bench_ranks_LDADD = $(DAEMON_LIBS)

tests_bench_bench_rdma_SOURCES = tests/bench/bench_rdma.c tests/unit/nldev_bytes.h
tests_bench_bench_rdma_LDADD = agent/libftagent.a proto/libftproto.a lib/base/libftbase.a $(XXHASH_LIBS)

tests_bench_bench_steps_SOURCES = tests/bench/bench_steps.c tests/unit/leafspine.h
tests_bench_bench_steps_LDADD = $(DAEMON_LIBS)

# Run by themselves; the first needs root and snmpd, the third valgrind, the last perf.
EXTRA_DIST += tests/bench/snmp_scale.py tests/bench/nccl_cost.py tests/bench/psn_cost.py tests/bench/srv6_cost.py tests/bench/rooms.py

# Figures, not tests: they say how fast, and nothing fails when they are slow.
.PHONY: bench
bench: tests/bench/bench_decode tests/bench/bench_diagnosis tests/bench/bench_hashes \
	tests/bench/bench_join tests/bench/bench_nccl \
	tests/bench/bench_pairing tests/bench/bench_partials tests/bench/bench_ranks tests/bench/bench_rdma \
	tests/bench/bench_steps tests/bench/flood \
	switchpoll/fabrictrace-switchpoll $(nccl_plugin)
	tests/bench/bench_decode
	tests/bench/bench_diagnosis
	tests/bench/bench_hashes
	tests/bench/bench_hashes --keyed
	tests/bench/bench_join
	tests/bench/bench_nccl $(nccl_plugin)
	tests/bench/bench_pairing
	tests/bench/bench_partials
	tests/bench/bench_ranks
	tests/bench/bench_rdma
	tests/bench/bench_steps
	$(srcdir)/tests/bench/workers.py || :

tests_bench_flood_SOURCES = tests/bench/flood.c
tests_bench_flood_LDADD = lib/base/libftbase.a

tests_bench_fabric_flood_SOURCES = tests/bench/fabric_flood.c
tests_bench_fabric_flood_LDADD = lib/base/libftbase.a

# From datagrams to paths in a file, all programs at once; about a minute for a row.
EXTRA_DIST += tests/bench/e2e.py
E2E_OPTIONS =
.PHONY: bench-e2e
bench-e2e: tests/bench/fabric_flood switchpoll/fabrictrace-switchpoll daemon/fabrictraced
	$(srcdir)/tests/bench/e2e.py $(E2E_OPTIONS)

# Between two daemons, the first of which is killed or stopped; some minutes.
EXTRA_DIST += tests/bench/failover.py
FAILOVER_OPTIONS =
.PHONY: bench-failover
bench-failover: tests/kafka/feeder daemon/fabrictraced
	$(srcdir)/tests/bench/failover.py $(FAILOVER_OPTIONS)

# A collector to compare with, from Go's module proxy; absent ones are skipped by name.
GOFLOW2_VERSION = v2.2.6
CLEANFILES += tests/bench/goflow2
tests/bench/goflow2:
	GOBIN=$(abs_builddir)/tests/bench go install \
		github.com/netsampler/goflow2/v2/cmd/goflow2@$(GOFLOW2_VERSION)

tests_bench_count_SOURCES = tests/bench/count.c

# The poller against other collectors, for some minutes; root, for the receive buffer.
EXTRA_DIST += tests/bench/receiving.py tests/bench/sflow.py tests/bench/workers.py tests/bench/README.md
.PHONY: bench-sflow
bench-sflow: tests/bench/count tests/bench/flood switchpoll/fabrictrace-switchpoll
	$(srcdir)/tests/bench/sflow.py
