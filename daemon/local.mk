# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += daemon/libftdaemon.a
daemon_libftdaemon_a_SOURCES = \
	daemon/agents.c daemon/agents.h \
	daemon/api.c daemon/api.h \
	daemon/api_matrix.c daemon/api_matrix.h \
	daemon/api_qps.c daemon/api_qps.h \
	daemon/api_ranks.c daemon/api_ranks.h \
	daemon/api_topology.c daemon/api_topology.h \
	daemon/attach.c daemon/attach.h \
	daemon/changes.c daemon/changes.h \
	daemon/clocks.c daemon/clocks.h \
	daemon/collisions.c daemon/collisions.h \
	daemon/congestion.c daemon/congestion.h \
	daemon/daemon.c daemon/daemon.h \
	daemon/counters.c daemon/counters.h \
	daemon/discovery.c daemon/discovery.h \
	daemon/doctor.c daemon/doctor.h \
	daemon/emit.c daemon/emit.h \
	daemon/events.c daemon/events.h \
	daemon/exporters.c daemon/exporters.h \
	daemon/figures.c daemon/figures.h \
	daemon/findings.c daemon/findings.h \
	daemon/ids.c daemon/ids.h \
	daemon/intake.c daemon/intake.h \
	daemon/join.c daemon/join.h \
	daemon/loads.c daemon/loads.h \
	daemon/losses.c daemon/losses.h \
	daemon/metrics_text.c daemon/metrics_text.h \
	daemon/names.c daemon/names.h \
	daemon/pair_links.c daemon/pair_links.h \
	daemon/pairing.c daemon/pairing.h \
	daemon/pairing_link.c daemon/pairing_state.h \
	daemon/pairing_find.c \
	daemon/pairing_scope.c \
	daemon/pairing_wire.c \
	daemon/pipeline.c daemon/pipeline.h \
	daemon/processors.c daemon/processors.h \
	daemon/publish.c daemon/publish.h \
	daemon/ranks.c daemon/ranks.h \
	daemon/replay.c daemon/replay.h \
	daemon/reports.c daemon/reports.h \
	daemon/sampled.c daemon/sampled.h \
	daemon/settings.c daemon/settings.h \
	daemon/sink_file.c \
	daemon/sink_kafka.c \
	daemon/slowest.c daemon/slowest.h \
	daemon/store.c daemon/store.h \
	daemon/survey.c daemon/survey.h \
	daemon/survey_hosts.c \
	daemon/survey_links.c \
	daemon/survey_tiers.c \
	daemon/topology_diff.c daemon/topology_diff.h \
	daemon/topology_file.c daemon/topology_file.h \
	daemon/view.h \
	daemon/window.c daemon/window.h

DAEMON_LIBS = daemon/libftdaemon.a lib/config/libftconfig.a lib/fabric/libftfabric.a \
	proto/libftproto.a $(IO_LIBS) $(YAML_LIBS) $(JANSSON_LIBS) $(PROTOBUFC_LIBS)

sbin_PROGRAMS += daemon/fabrictraced
daemon_fabrictraced_SOURCES = daemon/main.c
daemon_fabrictraced_LDADD = $(DAEMON_LIBS)
