# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += agent/libftagent.a
agent_libftagent_a_SOURCES = \
	agent/agent.c agent/agent.h \
	agent/aggregates.c agent/aggregates.h \
	agent/capture.c agent/capture.h \
	agent/collectives.c agent/collectives.h \
	agent/engine.c agent/engine.h \
	agent/flows.c agent/flows.h \
	agent/interfaces.c agent/interfaces.h \
	agent/collective_record.c agent/collective_record.h \
	agent/jobs.c agent/jobs.h \
	agent/lacks.c agent/lacks.h \
	agent/live.c agent/live.h \
	agent/metrics.c agent/metrics.h \
	agent/nlattr.c agent/nlattr.h \
	agent/owners.c agent/owners.h \
	agent/privilege.c agent/privilege.h \
	agent/rdma.c agent/rdma.h \
	agent/rdma_monitor.c agent/rdma_monitor.h \
	agent/rdma_nldev.c agent/rdma_nldev.h \
	agent/rdma_ports.c agent/rdma_ports.h \
	agent/rdma_qpc.c agent/rdma_qpc.h \
	agent/rdma_query.c agent/rdma_query.h \
	agent/rdma_sport.c agent/rdma_sport.h \
	agent/rdma_sysfs.c agent/rdma_sysfs.h \
	agent/rdma_table.c agent/rdma_table.h \
	agent/replay.c agent/replay.h \
	agent/report.c agent/report.h \
	agent/rings.c agent/rings.h \
	agent/report_host.c agent/report_host.h \
	agent/report_qps.c agent/report_qps.h \
	agent/report_status.c agent/report_status.h \
	agent/settings.c agent/settings.h \
	agent/sniffer.c agent/sniffer.h \
	agent/uplink.c agent/uplink.h

sbin_PROGRAMS += agent/fabrictrace-agent
agent_fabrictrace_agent_SOURCES = agent/main.c
agent_fabrictrace_agent_LDADD = $(AGENT_LIBS)

# What links the agent's parts links this.
AGENT_LIBS = agent/libftagent.a proto/libftproto.a lib/config/libftconfig.a $(IO_LIBS) \
	$(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) -lm

agent_scripts = tests/golden/agent/replay.py tests/golden/agent/live.py \
	tests/golden/agent/privilege.py
TESTS += $(agent_scripts)
EXTRA_DIST += $(agent_scripts) tests/golden/agent/captures.py tests/golden/agent/rxe.pcap \
	tests/golden/agent/rxe.ndjson
