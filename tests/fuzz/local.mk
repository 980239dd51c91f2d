# SPDX-License-Identifier: Apache-2.0
# libFuzzer targets, built by `CC=clang ./configure --enable-fuzzing`; tests/fuzz/smoke.sh runs each
# for a while. To add fuzz_NAME: write tests/fuzz/fuzz_NAME.c around fuzz.h, give it a block like
# those below with the libraries that it needs, add it to fuzz_programs, and put a few small inputs,
# good and bad, into tests/fuzz/corpus/NAME/.
fuzz_programs = \
	tests/fuzz/fuzz_asking \
	tests/fuzz/fuzz_batch \
	tests/fuzz/fuzz_csv \
	tests/fuzz/fuzz_chakra \
	tests/fuzz/fuzz_flight \
	tests/fuzz/fuzz_envelope \
	tests/fuzz/fuzz_flows \
	tests/fuzz/fuzz_columns \
	tests/fuzz/fuzz_device \
	tests/fuzz/fuzz_entry \
	tests/fuzz/fuzz_frame \
	tests/fuzz/fuzz_hello \
	tests/fuzz/fuzz_history \
	tests/fuzz/fuzz_identity \
	tests/fuzz/fuzz_incident \
	tests/fuzz/fuzz_json \
	tests/fuzz/fuzz_message \
	tests/fuzz/fuzz_packet \
	tests/fuzz/fuzz_partial \
	tests/fuzz/fuzz_pcap \
	tests/fuzz/fuzz_plan \
	tests/fuzz/fuzz_probe \
	tests/fuzz/fuzz_ras \
	tests/fuzz/fuzz_rdma \
	tests/fuzz/fuzz_registry \
	tests/fuzz/fuzz_request \
	tests/fuzz/fuzz_response \
	tests/fuzz/fuzz_rings \
	tests/fuzz/fuzz_sflow \
	tests/fuzz/fuzz_spool \
	tests/fuzz/fuzz_targets \
	tests/fuzz/fuzz_topology \
	tests/fuzz/fuzz_unpack \
	tests/fuzz/fuzz_yaml

fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_proto_libs = proto/libftproto.a lib/base/libftbase.a $(PROTOBUFC_LIBS) $(JANSSON_LIBS)

if FUZZING
noinst_PROGRAMS += $(fuzz_programs)

# These alone.
fuzz: $(BUILT_SOURCES)
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(fuzz_programs)
endif
.PHONY: fuzz bench-fuzz
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/decoders tests/fuzz/smoke.sh

# Each target in turn for a long time; what it finds is kept in tests/fuzz/kept of the build folder,
# and the next run goes on from there.
FUZZ_SECONDS = 600
if FUZZING
bench-fuzz: $(fuzz_programs)
	$(srcdir)/tests/fuzz/smoke.sh -s $(FUZZ_SECONDS) -j 1 -k tests/fuzz/kept .
else
bench-fuzz:
	@echo "bench-fuzz: needs a build by CC=clang configure --enable-fuzzing" >&2; exit 1
endif

tests_fuzz_fuzz_batch_SOURCES = tests/fuzz/fuzz_batch.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_batch_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_batch_LDADD = $(fuzz_proto_libs)

tests_fuzz_fuzz_csv_SOURCES = tests/fuzz/fuzz_csv.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_csv_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_csv_LDADD = lib/diagnosis/libftdiagnosis.a lib/base/libftbase.a $(XXHASH_LIBS) -lm

tests_fuzz_fuzz_flight_SOURCES = tests/fuzz/fuzz_flight.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_flight_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_flight_LDADD = $(tests_fuzz_fuzz_csv_LDADD)

tests_fuzz_fuzz_ras_SOURCES = tests/fuzz/fuzz_ras.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_ras_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_ras_LDADD = agent/libftagent.a lib/diagnosis/libftdiagnosis.a $(fuzz_proto_libs) $(XXHASH_LIBS) -lm

tests_fuzz_fuzz_chakra_SOURCES = tests/fuzz/fuzz_chakra.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_chakra_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_chakra_LDADD = cli/libftcli.a lib/whatif/libftwhatif.a lib/files/libftfiles.a lib/sim/libftsim.a \
	lib/fabric/libftfabric.a lib/config/libftconfig.a proto/libftproto.a lib/base/libftbase.a \
	$(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) $(XXHASH_LIBS)

tests_fuzz_fuzz_envelope_SOURCES = tests/fuzz/fuzz_envelope.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_envelope_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_envelope_LDADD = $(TOPICS_LIBS)

tests_fuzz_fuzz_flows_SOURCES = tests/fuzz/fuzz_flows.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_flows_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_flows_LDADD = lib/files/libftfiles.a lib/sim/libftsim.a lib/fabric/libftfabric.a \
	lib/config/libftconfig.a lib/base/libftbase.a $(YAML_LIBS) $(XXHASH_LIBS)

tests_fuzz_fuzz_columns_SOURCES = tests/fuzz/fuzz_columns.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_columns_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_columns_LDADD = $(fuzz_proto_libs) $(XXHASH_LIBS)

tests_fuzz_fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c tests/fuzz/fuzz.h tests/fuzz/nested.h
tests_fuzz_fuzz_frame_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_frame_LDADD = lib/io/libftio.a lib/base/libftbase.a

tests_fuzz_fuzz_history_SOURCES = tests/fuzz/fuzz_history.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_history_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_history_LDADD = $(DAEMON_LIBS)

tests_fuzz_fuzz_identity_SOURCES = tests/fuzz/fuzz_identity.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_identity_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_identity_LDADD = $(DAEMON_LIBS)

tests_fuzz_fuzz_incident_SOURCES = tests/fuzz/fuzz_incident.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_incident_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_incident_LDADD = $(DAEMON_LIBS)

tests_fuzz_fuzz_json_SOURCES = tests/fuzz/fuzz_json.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_json_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_json_LDADD = $(fuzz_proto_libs)

tests_fuzz_fuzz_message_SOURCES = tests/fuzz/fuzz_message.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_message_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_message_LDADD = $(fuzz_proto_libs)

tests_fuzz_fuzz_partial_SOURCES = tests/fuzz/fuzz_partial.c tests/fuzz/fuzz.h tests/unit/leafspine.h
tests_fuzz_fuzz_partial_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_partial_LDADD = $(DAEMON_LIBS)

tests_fuzz_fuzz_packet_SOURCES = tests/fuzz/fuzz_packet.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_packet_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_packet_LDADD = $(fuzz_proto_libs)

tests_fuzz_fuzz_registry_SOURCES = tests/fuzz/fuzz_registry.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_registry_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_registry_LDADD = lib/io/libftio.a lib/base/libftbase.a $(JANSSON_LIBS)

tests_fuzz_fuzz_unpack_SOURCES = tests/fuzz/fuzz_unpack.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_unpack_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_unpack_LDADD = lib/io/libftio.a lib/base/libftbase.a $(ZLIB_LIBS) $(ZSTD_LIBS)

tests_fuzz_fuzz_request_SOURCES = tests/fuzz/fuzz_request.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_request_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_request_LDADD = $(IO_LIBS)

tests_fuzz_fuzz_response_SOURCES = tests/fuzz/fuzz_response.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_response_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_response_LDADD = lib/io/libftio.a lib/base/libftbase.a

tests_fuzz_fuzz_plan_SOURCES = tests/fuzz/fuzz_plan.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_plan_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_plan_LDADD = agent/libftagent.a $(fuzz_proto_libs) $(XXHASH_LIBS)

tests_fuzz_fuzz_probe_SOURCES = tests/fuzz/fuzz_probe.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_probe_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_probe_LDADD = agent/libftagent.a proto/libftproto.a lib/base/libftbase.a

tests_fuzz_fuzz_rdma_SOURCES = tests/fuzz/fuzz_rdma.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_rdma_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_rdma_LDADD = agent/libftagent.a proto/libftproto.a lib/base/libftbase.a $(XXHASH_LIBS)

tests_fuzz_fuzz_rings_SOURCES = tests/fuzz/fuzz_rings.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_rings_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_rings_LDADD = agent/libftagent.a $(fuzz_proto_libs) $(XXHASH_LIBS)

tests_fuzz_fuzz_sflow_SOURCES = tests/fuzz/fuzz_sflow.c tests/fuzz/fuzz.h tests/fuzz/nested.h
tests_fuzz_fuzz_sflow_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_sflow_LDADD = $(fuzz_proto_libs)

tests_fuzz_fuzz_spool_SOURCES = tests/fuzz/fuzz_spool.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_spool_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_spool_LDADD = lib/io/libftio.a lib/base/libftbase.a $(XXHASH_LIBS)

tests_fuzz_fuzz_topology_SOURCES = tests/fuzz/fuzz_topology.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_topology_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_topology_LDADD = lib/files/libftfiles.a lib/fabric/libftfabric.a \
	lib/config/libftconfig.a lib/base/libftbase.a $(YAML_LIBS) $(XXHASH_LIBS)

tests_fuzz_fuzz_yaml_SOURCES = tests/fuzz/fuzz_yaml.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_yaml_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_yaml_LDADD = lib/config/libftconfig.a lib/base/libftbase.a $(YAML_LIBS)

tests_fuzz_fuzz_asking_SOURCES = tests/fuzz/fuzz_asking.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_asking_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_asking_LDADD = lib/config/libftconfig.a lib/base/libftbase.a $(YAML_LIBS)

tests_fuzz_fuzz_device_SOURCES = tests/fuzz/fuzz_device.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_device_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_device_LDADD = $(SWITCHPOLL_LIBS)

tests_fuzz_fuzz_entry_SOURCES = tests/fuzz/fuzz_entry.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_entry_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_entry_LDADD = $(IO_LIBS)

tests_fuzz_fuzz_hello_SOURCES = tests/fuzz/fuzz_hello.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_hello_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_hello_LDADD = agent/libftagent.a lib/io/libftio.a $(fuzz_proto_libs) $(XXHASH_LIBS)

tests_fuzz_fuzz_pcap_SOURCES = tests/fuzz/fuzz_pcap.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_pcap_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_pcap_LDADD = $(IO_LIBS)

tests_fuzz_fuzz_targets_SOURCES = tests/fuzz/fuzz_targets.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_targets_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_targets_LDADD = $(SWITCHPOLL_LIBS)
