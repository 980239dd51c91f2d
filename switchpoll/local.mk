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
	switchpoll/exporters.c switchpoll/exporters.h \
	switchpoll/fold.c switchpoll/fold.h \
	switchpoll/ingest.c switchpoll/ingest.h \
	switchpoll/live.c switchpoll/live.h \
	switchpoll/loss.c switchpoll/loss.h \
	switchpoll/metrics.c switchpoll/metrics.h \
	switchpoll/output.c switchpoll/output.h \
	switchpoll/pipeline.c switchpoll/pipeline.h \
	switchpoll/ports.c switchpoll/ports.h \
	switchpoll/replay.c switchpoll/replay.h \
	switchpoll/sequence.c switchpoll/sequence.h \
	switchpoll/settings.c switchpoll/settings.h \
	switchpoll/sink.h \
	$(switchpoll_snmp) \
	switchpoll/switchpoll.c switchpoll/switchpoll.h \
	switchpoll/telemetry.c switchpoll/telemetry.h \
	switchpoll/udp.c switchpoll/udp.h \
	switchpoll/workers.c switchpoll/workers.h

# What fabrictrace-switchpoll and its tests link.
SWITCHPOLL_LIBS = switchpoll/libftswitchpoll.a proto/libftproto.a lib/config/libftconfig.a \
	$(IO_LIBS) $(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) -lm

sbin_PROGRAMS += switchpoll/fabrictrace-switchpoll
switchpoll_fabrictrace_switchpoll_SOURCES = switchpoll/main.c
switchpoll_fabrictrace_switchpoll_LDADD = $(SWITCHPOLL_LIBS)
