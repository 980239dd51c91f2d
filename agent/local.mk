# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += agent/libftagent.a
agent_libftagent_a_SOURCES = \
	agent/agent.c agent/agent.h \
	agent/aggregates.c agent/aggregates.h \
	agent/capture.c agent/capture.h \
	agent/engine.c agent/engine.h \
	agent/flows.c agent/flows.h \
	agent/interfaces.c agent/interfaces.h \
	agent/lacks.c agent/lacks.h \
	agent/live.c agent/live.h \
	agent/metrics.c agent/metrics.h \
	agent/owners.c agent/owners.h \
	agent/replay.c agent/replay.h \
	agent/report.c agent/report.h \
	agent/report_host.c agent/report_host.h \
	agent/report_qps.c agent/report_qps.h \
	agent/report_status.c agent/report_status.h \
	agent/settings.c agent/settings.h \
	agent/sniffer.c agent/sniffer.h \
	agent/uplink.c agent/uplink.h \
	agent/jobs/collective_record.c agent/jobs/collective_record.h \
	agent/jobs/collectives.c agent/jobs/collectives.h \
	agent/jobs/jobs.c agent/jobs/jobs.h \
	agent/jobs/rings.c agent/jobs/rings.h \
	agent/jobs/tally.c agent/jobs/tally.h \
	agent/rdma/devices.c agent/rdma/devices.h \
	agent/rdma/monitor.c agent/rdma/monitor.h \
	agent/rdma/nlattr.c agent/rdma/nlattr.h \
	agent/rdma/nldev.c agent/rdma/nldev.h \
	agent/rdma/ports.c agent/rdma/ports.h \
	agent/rdma/qpc.c agent/rdma/qpc.h \
	agent/rdma/query.c agent/rdma/query.h \
	agent/rdma/rdma.c agent/rdma/rdma.h \
	agent/rdma/sport.c agent/rdma/sport.h \
	agent/rdma/sysfs.c agent/rdma/sysfs.h \
	agent/rdma/table.c agent/rdma/table.h

sbin_PROGRAMS += agent/fabrictrace-agent
agent_fabrictrace_agent_SOURCES = agent/main.c
agent_fabrictrace_agent_LDADD = $(AGENT_LIBS)

# What links the agent's parts links this.
AGENT_LIBS = agent/libftagent.a proto/libftproto.a lib/config/libftconfig.a $(IO_LIBS) \
	$(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) -lm

agent_scripts = tests/golden/agent/replay.py tests/golden/agent/live.py \
	tests/golden/agent/privilege.py tests/golden/agent/reload.py
TESTS += $(agent_scripts)
EXTRA_DIST += $(agent_scripts) tests/golden/agent/captures.py tests/golden/agent/rxe.pcap \
	tests/golden/agent/rxe.ndjson
