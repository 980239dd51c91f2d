# SPDX-License-Identifier: Apache-2.0
switchpoll_snmp = \
	switchpoll/snmp/counters.c switchpoll/snmp/counters.h \
	switchpoll/snmp/device.c switchpoll/snmp/device.h switchpoll/snmp/device_impl.h \
	switchpoll/snmp/device_cells.c switchpoll/snmp/device_problem.c \
	switchpoll/snmp/identity.c switchpoll/snmp/identity.h \
	switchpoll/snmp/mib.c switchpoll/snmp/mib.h \
	switchpoll/snmp/poll.c switchpoll/snmp/poll.h \
	switchpoll/snmp/poller.c switchpoll/snmp/poller.h \
	switchpoll/snmp/report.c switchpoll/snmp/report.h \
	switchpoll/snmp/resolve.c switchpoll/snmp/resolve.h \
	switchpoll/snmp/service.c switchpoll/snmp/service.h \
	switchpoll/snmp/targets.c switchpoll/snmp/targets.h \
	switchpoll/snmp/walk.c switchpoll/snmp/walk.h

noinst_LIBRARIES += switchpoll/libftswitchpoll.a
switchpoll_libftswitchpoll_a_SOURCES = \
	switchpoll/sflow/before.c switchpoll/sflow/before.h \
	switchpoll/sflow/exporters.c switchpoll/sflow/exporters.h \
	switchpoll/sflow/fold.c switchpoll/sflow/fold.h switchpoll/sflow/fold_impl.h switchpoll/sflow/fold_record.c \
	switchpoll/sflow/ingest.c switchpoll/sflow/ingest.h \
	switchpoll/live.c switchpoll/live.h \
	switchpoll/metrics.c switchpoll/metrics.h \
	switchpoll/output/loss.c switchpoll/output/loss.h \
	switchpoll/output/gather.c switchpoll/output/gather.h \
	switchpoll/output/output.c switchpoll/output/output.h \
	switchpoll/sflow/pace.c switchpoll/sflow/pace.h \
	switchpoll/sflow/pipeline.c switchpoll/sflow/pipeline.h \
	switchpoll/sflow/ports.c switchpoll/sflow/ports.h \
	switchpoll/replay.c switchpoll/replay.h \
	switchpoll/sflow/sequence.c switchpoll/sflow/sequence.h \
	switchpoll/settings.c switchpoll/settings.h \
	switchpoll/output/sink.h \
	$(switchpoll_snmp) \
	switchpoll/switchpoll.c switchpoll/switchpoll.h \
	switchpoll/sflow/telemetry.c switchpoll/sflow/telemetry.h \
	switchpoll/sflow/udp.c switchpoll/sflow/udp.h \
	switchpoll/sflow/workers.c switchpoll/sflow/workers.h

# What fabrictrace-switchpoll and its tests link.
SWITCHPOLL_LIBS = switchpoll/libftswitchpoll.a lib/topics/libfttopics.a proto/libftproto.a lib/config/libftconfig.a \
	$(IO_LIBS) $(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) -lm

sbin_PROGRAMS += switchpoll/fabrictrace-switchpoll
switchpoll_fabrictrace_switchpoll_SOURCES = switchpoll/main.c
switchpoll_fabrictrace_switchpoll_LDADD = $(SWITCHPOLL_LIBS)
