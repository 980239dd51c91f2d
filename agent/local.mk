# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += agent/libftagent.a
agent_libftagent_a_SOURCES = \
	agent/agent.c agent/agent.h \
	agent/capture/aggregates.c agent/capture/aggregates.h \
	agent/capture/capture.c agent/capture/capture.h \
	agent/capture/flows.c agent/capture/flows.h \
	agent/capture/interfaces.c agent/capture/interfaces.h \
	agent/engine.c agent/engine.h \
	agent/jobs/collective_record.c agent/jobs/collective_record.h \
	agent/jobs/collectives.c agent/jobs/collectives.h \
	agent/jobs/jobs.c agent/jobs/jobs.h agent/jobs/jobs_impl.h agent/jobs/jobs_read.c \
	agent/jobs/hello.c agent/jobs/hello.h \
	agent/jobs/peer_list.c agent/jobs/peer_list.h \
	agent/jobs/process.c agent/jobs/process.h \
	agent/jobs/progress.c agent/jobs/progress.h \
	agent/jobs/progress_record.c agent/jobs/progress_record.h \
	agent/jobs/rings.c agent/jobs/rings.h \
	agent/jobs/tally.c agent/jobs/tally.h \
	agent/live.c agent/live.h \
	agent/metrics.c agent/metrics.h \
	agent/plans/ask.c agent/plans/ask.h \
	agent/plans/plan_file.c agent/plans/plan_file.h \
	agent/plans/plan_reader.c agent/plans/plan_reader.h \
	agent/plans/plan_report.c agent/plans/plan_report.h \
	agent/plans/plans.c agent/plans/plans.h \
	agent/plans/kept.c agent/plans/kept.h \
	agent/plans/withdrawn.c agent/plans/withdrawn.h \
	agent/probe/course.c agent/probe/course.h \
	agent/probe/packet.c agent/probe/packet.h \
	agent/probe/probes.c agent/probe/probes.h \
	agent/probe/sockets.c agent/probe/sockets.h \
	agent/rdma/devices.c agent/rdma/devices.h \
	agent/rdma/monitor.c agent/rdma/monitor.h \
	agent/rdma/nlattr.c agent/rdma/nlattr.h \
	agent/rdma/nldev.c agent/rdma/nldev.h \
	agent/rdma/owners.c agent/rdma/owners.h \
	agent/rdma/ports.c agent/rdma/ports.h \
	agent/rdma/qpc.c agent/rdma/qpc.h \
	agent/rdma/query.c agent/rdma/query.h \
	agent/rdma/rdma.c agent/rdma/rdma.h agent/rdma/rdma_impl.h \
	agent/rdma/rdma_lists.c \
	agent/rdma/sniffer.c agent/rdma/sniffer.h \
	agent/rdma/sport.c agent/rdma/sport.h \
	agent/rdma/sysfs.c agent/rdma/sysfs.h \
	agent/rdma/table.c agent/rdma/table.h agent/rdma/table_impl.h \
	agent/rdma/table_flows.c \
	agent/replay.c agent/replay.h \
	agent/report/flow.c agent/report/flow.h \
	agent/report/host.c agent/report/host.h \
	agent/report/missing.c agent/report/missing.h \
	agent/report/queue_pairs.c agent/report/queue_pairs.h \
	agent/report/status.c agent/report/status.h \
	agent/report/uplink.c agent/report/uplink.h \
	agent/services.c agent/services.h \
	agent/settings.c agent/settings.h \
	agent/states/dumps.c agent/states/dumps.h \
	agent/states/states.c agent/states/states.h \
	agent/states/states_record.c agent/states/states_record.h

sbin_PROGRAMS += agent/fabrictrace-agent
agent_fabrictrace_agent_SOURCES = agent/main.c
agent_fabrictrace_agent_LDADD = $(AGENT_LIBS)

# What links the agent's parts links this.
AGENT_LIBS = agent/libftagent.a lib/topics/libfttopics.a lib/diagnosis/libftdiagnosis.a proto/libftproto.a lib/config/libftconfig.a $(IO_LIBS) \
	$(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) $(XXHASH_LIBS) -lm

agent_scripts = tests/golden/agent/replay.py tests/golden/agent/live.py \
	tests/golden/agent/privilege.py tests/golden/agent/reload.py
TESTS += $(agent_scripts)
EXTRA_DIST += $(agent_scripts) tests/golden/agent/captures.py tests/golden/agent/rxe.pcap \
	tests/golden/agent/rxe.ndjson
