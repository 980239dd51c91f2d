# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += daemon/libftdaemon.a
daemon_libftdaemon_a_SOURCES = \
	daemon/api/api.c daemon/api/api.h \
	daemon/api/comparison.c daemon/api/comparison.h \
	daemon/api/diagnoses.c daemon/api/diagnoses.h \
	daemon/api/doctor.c daemon/api/doctor.h \
	daemon/api/explain.c daemon/api/explain.h \
	daemon/api/finding_names.c daemon/api/finding_names.h \
	daemon/api/happenings.c daemon/api/happenings.h \
	daemon/api/list.c daemon/api/list.h \
	daemon/api/lists.c daemon/api/lists.h \
	daemon/api/matrix.c daemon/api/matrix.h \
	daemon/api/hashes.c daemon/api/hashes.h \
	daemon/api/rhythms.c daemon/api/rhythms.h \
	daemon/api/spread.c daemon/api/spread.h \
	daemon/api/job_figures.c daemon/api/job_figures.h \
	daemon/api/metrics.c daemon/api/metrics.h \
	daemon/api/metrics_kafka.c daemon/api/metrics_kafka.h \
	daemon/api/metrics_text.c daemon/api/metrics_text.h \
	daemon/api/window_figures.c daemon/api/window_figures.h \
	daemon/api/orders.c daemon/api/orders.h \
	daemon/api/openapi.c daemon/api/openapi.h \
	daemon/api/page.h \
	daemon/api/paths.c daemon/api/paths.h \
	daemon/api/plans.c daemon/api/plans.h \
	daemon/api/qps.c daemon/api/qps.h \
	daemon/api/ranks.c daemon/api/ranks.h \
	daemon/api/sorted.c daemon/api/sorted.h \
	daemon/api/sources.c daemon/api/sources.h \
	daemon/api/live.c daemon/api/live.h \
	daemon/api/topology.c daemon/api/topology.h \
	daemon/api/view.h \
	daemon/api/web.c daemon/api/web.h \
	daemon/api/whatif.c daemon/api/whatif.h \
	daemon/api/windows.c daemon/api/windows.h \
	daemon/daemon.c daemon/daemon.h \
	daemon/incident/entry.c daemon/incident/entry.h \
	daemon/incident/head.c daemon/incident/head.h \
	daemon/incident/loading.c daemon/incident/loading.h \
	daemon/incident/player.c daemon/incident/player.h \
	daemon/incident/recorder.c daemon/incident/recorder.h \
	daemon/api/incident.c daemon/api/incident.h \
	daemon/discovery/attach.c daemon/discovery/attach.h \
	daemon/discovery/changes.c daemon/discovery/changes.h \
	daemon/discovery/discovery.c daemon/discovery/discovery.h \
	daemon/discovery/discovery_impl.h \
	daemon/discovery/links.c \
	daemon/discovery/ids.c daemon/discovery/ids.h \
	daemon/discovery/port_names.c daemon/discovery/port_names.h \
	daemon/discovery/down_ports.c daemon/discovery/down_ports.h \
	daemon/discovery/reports.c daemon/discovery/reports.h \
	daemon/discovery/survey.c daemon/discovery/survey.h \
	daemon/discovery/survey_build.c \
	daemon/discovery/survey_ends.c \
	daemon/discovery/survey_hosts.c \
	daemon/discovery/survey_links.c \
	daemon/discovery/survey_samples.c \
	daemon/discovery/survey_strangers.c \
	daemon/discovery/survey_tiers.c \
	daemon/discovery/topology_diff.c daemon/discovery/topology_diff.h \
	daemon/discovery/wiring.c daemon/discovery/wiring.h \
	daemon/diagnosis/blamed.c daemon/diagnosis/blamed.h \
	daemon/diagnosis/answers.c daemon/diagnosis/answers.h \
	daemon/diagnosis/apart.c daemon/diagnosis/apart.h \
	daemon/diagnosis/cut.c daemon/diagnosis/cut.h \
	daemon/diagnosis/delays.c daemon/diagnosis/delays.h daemon/diagnosis/delays_judge.c \
	daemon/diagnosis/diagnoser.c daemon/diagnosis/diagnoser.h \
	daemon/diagnosis/downed.c daemon/diagnosis/downed.h \
	daemon/diagnosis/event.c daemon/diagnosis/event.h \
	daemon/diagnosis/gather.c daemon/diagnosis/gather.h daemon/diagnosis/gather_parts.h \
	daemon/diagnosis/gather_rows.c \
	daemon/diagnosis/numbering.c daemon/diagnosis/numbering.h \
	daemon/diagnosis/functions.c daemon/diagnosis/functions.h \
	daemon/diagnosis/recent.c daemon/diagnosis/recent.h \
	daemon/diagnosis/recent_age.c daemon/diagnosis/recent_impl.h \
	daemon/diagnosis/recent_jobs.c \
	daemon/diagnosis/partial.c daemon/diagnosis/partial.h \
	daemon/diagnosis/pair_rates.c daemon/diagnosis/pair_rates.h \
	daemon/diagnosis/pair_rates_found.c daemon/diagnosis/pair_rates_parts.h \
	daemon/diagnosis/pair_rates_said.c \
	daemon/diagnosis/job_sent.c daemon/diagnosis/job_sent.h \
	daemon/diagnosis/rhythms.c daemon/diagnosis/rhythms.h \
	daemon/diagnosis/resent.c daemon/diagnosis/resent.h \
	daemon/diagnosis/second.c daemon/diagnosis/second.h \
	daemon/diagnosis/stalled.c daemon/diagnosis/stalled.h \
	daemon/diagnosis/silence.c daemon/diagnosis/silence.h \
	daemon/diagnosis/stall.c daemon/diagnosis/stall.h \
	daemon/diagnosis/stand.c daemon/diagnosis/stand.h \
	daemon/diagnosis/standing.c daemon/diagnosis/standing.h \
	daemon/diagnosis/witness.c daemon/diagnosis/witness.h \
	daemon/group/numbers.c daemon/group/numbers.h \
	daemon/group/progress.c daemon/group/progress.h \
	daemon/group/reader.c daemon/group/reader.h \
	daemon/group/role.c daemon/group/role.h \
	daemon/inference/inference.c daemon/inference/inference.h \
	daemon/hashes/hashes.c daemon/hashes/hashes.h \
	daemon/hashes/hashes_impl.h daemon/hashes/hashes_learn.c \
	daemon/hashes/hashes_never.c \
	daemon/hashes/hashes_set.c \
	daemon/hashes/hashes_trust.c \
	daemon/plans/bearing.c daemon/plans/bearing.h \
	daemon/plans/follower.c daemon/plans/follower.h \
	daemon/plans/follower_impl.h daemon/plans/follower_publish.c \
	daemon/plans/members.c daemon/plans/members.h \
	daemon/oracle/oracle.c daemon/oracle/oracle.h \
	daemon/service/oracles.c daemon/service/oracles.h \
	daemon/spread/kept.c daemon/spread/kept.h \
	daemon/spread/spread.c daemon/spread/spread.h daemon/spread/spread_impl.h \
	daemon/spread/spread_fill.c daemon/spread/spread_qps.c daemon/spread/spread_tiers.c \
	daemon/health/agents.c daemon/health/agents.h \
	daemon/health/clocks.c daemon/health/clocks.h \
	daemon/health/congestion.c daemon/health/congestion.h \
	daemon/health/detours.c daemon/health/detours.h \
	daemon/health/exporters.c daemon/health/exporters.h \
	daemon/probe/probed.c daemon/probe/probed.h \
	daemon/probe/probe_list.c daemon/probe/probe_list.h \
	daemon/probe/prober.c daemon/probe/prober.h \
	daemon/service/probers.c daemon/service/probers.h \
	daemon/api/probes.c daemon/api/probes.h \
	daemon/publish/findings.c daemon/publish/findings.h \
	daemon/health/losses.c daemon/health/losses.h \
	daemon/health/processors.c daemon/health/processors.h \
	daemon/health/unrated.c daemon/health/unrated.h \
	daemon/history/fixed.c daemon/history/fixed.h \
	daemon/history/history.c daemon/history/history.h daemon/history/history_impl.h \
	daemon/history/keeper.c daemon/history/keeper.h \
	daemon/history/latest.c daemon/history/latest.h \
	daemon/history/past.c daemon/history/past.h \
	daemon/history/row.c daemon/history/row.h \
	daemon/history/snapshot.c daemon/history/snapshot.h \
	daemon/jobs/flow_ranks.c daemon/jobs/flow_ranks.h \
	daemon/jobs/pair_links.c daemon/jobs/pair_links.h \
	daemon/jobs/ranks.c daemon/jobs/ranks.h \
	daemon/jobs/ranks_age.c daemon/jobs/ranks_impl.h \
	daemon/jobs/ranks_reports.c daemon/jobs/ranks_room.c \
	daemon/jobs/sent.c daemon/jobs/sent.h \
	daemon/jobs/slowest.c daemon/jobs/slowest.h \
	daemon/join/counters.c daemon/join/counters.h \
	daemon/join/flow_follow.c daemon/join/flow_follow.h \
	daemon/join/flow_host.c daemon/join/flow_host.h \
	daemon/join/flow_judge.c \
	daemon/join/flow_names.c daemon/join/flow_names.h \
	daemon/join/hints.c daemon/join/hints.h \
	daemon/join/likely.c daemon/join/likely.h \
	daemon/join/flow_clumps.c daemon/join/flow_clumps.h \
	daemon/join/flow_numbers.c daemon/join/flow_numbers.h \
	daemon/join/flow_parts.c daemon/join/flow_parts.h \
	daemon/join/flow_path.c daemon/join/flow_path.h \
	daemon/join/flow_networks.c daemon/join/flow_networks.h \
	daemon/join/flow_tunnel.c daemon/join/flow_tunnel.h \
	daemon/join/join.c daemon/join/join.h daemon/join/join_impl.h \
	daemon/join/moves.c daemon/join/moves.h \
	daemon/join/names.c daemon/join/names.h \
	daemon/join/observe.c \
	daemon/join/port_marks.c daemon/join/port_marks.h \
	daemon/join/outages.c daemon/join/outages.h \
	daemon/join/sampled.c daemon/join/sampled.h \
	daemon/memory.c daemon/memory.h \
	daemon/pairing/ends.c \
	daemon/pairing/find.c \
	daemon/pairing/link.c \
	daemon/pairing/lists.c \
	daemon/pairing/members.c \
	daemon/pairing/pairing.c daemon/pairing/pairing.h \
	daemon/pairing/groups.c \
	daemon/pairing/state.h \
	daemon/pairing/samples.c \
	daemon/pairing/sweep.c \
	daemon/pipeline/account.c \
	daemon/pipeline/arrivals.c daemon/pipeline/arrivals.h \
	daemon/pipeline/batch.c \
	daemon/pipeline/configure.c daemon/pipeline/configure.h \
	daemon/pipeline/hooks.c \
	daemon/pipeline/identity.c daemon/pipeline/identity.h \
	daemon/pipeline/intake.c daemon/pipeline/intake.h \
	daemon/pipeline/pipeline.c daemon/pipeline/pipeline.h \
	daemon/pipeline/pipeline_impl.h \
	daemon/pipeline/records.c \
	daemon/pipeline/replay.c daemon/pipeline/replay.h \
	daemon/pipeline/stages.c daemon/pipeline/stages.h \
	daemon/pipeline/topology.c \
	daemon/publish/emit.c daemon/publish/emit.h \
	daemon/publish/events.c daemon/publish/events.h \
	daemon/publish/findings.c daemon/publish/findings.h \
	daemon/publish/registered.c daemon/publish/registered.h \
	daemon/publish/registry_settings.c daemon/publish/registry_settings.h \
	daemon/publish/kafka_settings.c daemon/publish/kafka_settings.h \
	daemon/publish/open.c \
	daemon/publish/publish.c daemon/publish/publish.h \
	daemon/publish/sink_exec.c daemon/publish/sink_exec.h \
	daemon/publish/sink_file.c \
	daemon/publish/sink_kafka.c \
	daemon/publish/topics.c daemon/publish/topics.h \
	daemon/service/check.c daemon/service/check.h \
	daemon/service/exec.c \
	daemon/service/live.c \
	daemon/service/network.c \
	daemon/service/open.c \
	daemon/service/reload.c \
	daemon/service/replay.c \
	daemon/service/service.h \
	daemon/settings.c daemon/settings.h \
	daemon/window/collisions.c daemon/window/collisions.h \
	daemon/window/figures.c daemon/window/figures.h \
	daemon/window/polarized.c daemon/window/polarized.h \
	daemon/window/link_counters.c daemon/window/link_counters.h \
	daemon/window/lossy_links.c daemon/window/lossy_links.h \
	daemon/window/lossy_victims.c daemon/window/lossy_victims.h \
	daemon/window/resends.c daemon/window/resends.h \
	daemon/window/victim.c daemon/window/victim.h \
	daemon/window/stopped.c daemon/window/stopped.h \
	daemon/window/underused.c daemon/window/underused.h \
	daemon/window/partial.c daemon/window/partial_emit.c daemon/window/partial.h \
	daemon/window/loads.c daemon/window/loads.h \
	daemon/window/window.c daemon/window/window.h

DAEMON_LIBS = daemon/libftdaemon.a lib/topics/libfttopics.a lib/whatif/libftwhatif.a lib/files/libftfiles.a lib/sim/libftsim.a lib/config/libftconfig.a lib/diagnosis/libftdiagnosis.a lib/fabric/libftfabric.a \
	proto/libftproto.a $(IO_LIBS) $(YAML_LIBS) $(JANSSON_LIBS) $(PROTOBUFC_LIBS)

sbin_PROGRAMS += daemon/fabrictraced
daemon_fabrictraced_SOURCES = daemon/main.c
daemon_fabrictraced_LDADD = $(DAEMON_LIBS)

# The description of the HTTP API is made of the same table and descriptors as the answers.
noinst_PROGRAMS += daemon/api/print_openapi
daemon_api_print_openapi_SOURCES = daemon/api/print_openapi.c
daemon_api_print_openapi_LDADD = $(DAEMON_LIBS)

openapidir = $(pkgdatadir)
openapi_DATA = daemon/api/openapi.json
CLEANFILES += daemon/api/openapi.json
daemon/api/openapi.json: daemon/api/print_openapi$(EXEEXT)
	$(AM_V_GEN)daemon/api/print_openapi$(EXEEXT) >$@.tmp && mv $@.tmp $@

# Commands that ask switches (fabrictrace-oracle(7)).
oracledir = $(pkglibexecdir)
dist_oracle_SCRIPTS = \
	daemon/oracle/adapters/oracle-cumulus \
	daemon/oracle/adapters/oracle-eos \
	daemon/oracle/adapters/oracle-junos \
	daemon/oracle/adapters/oracle-linux \
	daemon/oracle/adapters/oracle-nxos \
	daemon/oracle/adapters/oracle-sonic
dist_oracle_DATA = daemon/oracle/adapters/oracle-common
