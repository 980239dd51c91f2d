# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += daemon/libftdaemon.a
daemon_libftdaemon_a_SOURCES = \
	daemon/check.c daemon/check.h \
	daemon/collisions.c daemon/collisions.h \
	daemon/counters.c daemon/counters.h \
	daemon/daemon.c daemon/daemon.h \
	daemon/emit.c daemon/emit.h \
	daemon/events.c daemon/events.h \
	daemon/figures.c daemon/figures.h \
	daemon/flow_follow.c daemon/flow_follow.h \
	daemon/identity.c daemon/identity.h \
	daemon/intake.c daemon/intake.h \
	daemon/join.c daemon/join.h \
	daemon/moves.c daemon/moves.h \
	daemon/loads.c daemon/loads.h \
	daemon/names.c daemon/names.h \
	daemon/pipeline.c daemon/pipeline.h \
	daemon/pipeline_account.c \
	daemon/pipeline_hooks.c \
	daemon/pipeline_impl.h \
	daemon/pipeline_records.c \
	daemon/pipeline_topology.c \
	daemon/replay.c daemon/replay.h \
	daemon/sampled.c daemon/sampled.h \
	daemon/settings.c daemon/settings.h \
	daemon/window.c daemon/window.h \
	daemon/api/api.c daemon/api/api.h \
	daemon/api/matrix.c daemon/api/matrix.h \
	daemon/api/metrics_text.c daemon/api/metrics_text.h \
	daemon/api/qps.c daemon/api/qps.h \
	daemon/api/ranks.c daemon/api/ranks.h \
	daemon/api/store.c daemon/api/store.h \
	daemon/api/topology.c daemon/api/topology.h \
	daemon/api/view.h \
	daemon/discovery/attach.c daemon/discovery/attach.h \
	daemon/discovery/changes.c daemon/discovery/changes.h \
	daemon/discovery/discovery.c daemon/discovery/discovery.h \
	daemon/discovery/ids.c daemon/discovery/ids.h \
	daemon/discovery/port_words.c daemon/discovery/port_words.h \
	daemon/discovery/reports.c daemon/discovery/reports.h \
	daemon/discovery/survey.c daemon/discovery/survey.h \
	daemon/discovery/survey_hosts.c \
	daemon/discovery/survey_links.c \
	daemon/discovery/survey_samples.c \
	daemon/discovery/survey_strangers.c \
	daemon/discovery/survey_tiers.c \
	daemon/discovery/topology_diff.c daemon/discovery/topology_diff.h \
	daemon/discovery/topology_file.c daemon/discovery/topology_file.h \
	daemon/discovery/wiring.c daemon/discovery/wiring.h \
	daemon/health/agents.c daemon/health/agents.h \
	daemon/health/clocks.c daemon/health/clocks.h \
	daemon/health/congestion.c daemon/health/congestion.h \
	daemon/health/detours.c daemon/health/detours.h \
	daemon/health/doctor.c daemon/health/doctor.h \
	daemon/health/exporters.c daemon/health/exporters.h \
	daemon/health/findings.c daemon/health/findings.h \
	daemon/health/losses.c daemon/health/losses.h \
	daemon/health/processors.c daemon/health/processors.h \
	daemon/health/unrated.c daemon/health/unrated.h \
	daemon/jobs/pair_links.c daemon/jobs/pair_links.h \
	daemon/jobs/ranks.c daemon/jobs/ranks.h \
	daemon/jobs/slowest.c daemon/jobs/slowest.h \
	daemon/pairing/find.c \
	daemon/pairing/link.c \
	daemon/pairing/members.c \
	daemon/pairing/pairing.c daemon/pairing/pairing.h \
	daemon/pairing/scope.c \
	daemon/pairing/state.h \
	daemon/pairing/wire.c \
	daemon/publish/publish.c daemon/publish/publish.h \
	daemon/publish/sink_file.c \
	daemon/publish/sink_kafka.c

DAEMON_LIBS = daemon/libftdaemon.a lib/config/libftconfig.a lib/fabric/libftfabric.a \
	proto/libftproto.a $(IO_LIBS) $(YAML_LIBS) $(JANSSON_LIBS) $(PROTOBUFC_LIBS)

sbin_PROGRAMS += daemon/fabrictraced
daemon_fabrictraced_SOURCES = daemon/main.c
daemon_fabrictraced_LDADD = $(DAEMON_LIBS)
