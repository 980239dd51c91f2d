# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += switchpoll/libftswitchpoll.a
switchpoll_libftswitchpoll_a_SOURCES = \
	switchpoll/exporters.c switchpoll/exporters.h \
	switchpoll/fold.c switchpoll/fold.h \
	switchpoll/ingest.c switchpoll/ingest.h \
	switchpoll/live.c switchpoll/live.h \
	switchpoll/loss.c switchpoll/loss.h \
	switchpoll/output.c switchpoll/output.h \
	switchpoll/pipeline.c switchpoll/pipeline.h \
	switchpoll/ports.c switchpoll/ports.h \
	switchpoll/replay.c switchpoll/replay.h \
	switchpoll/sequence.c switchpoll/sequence.h \
	switchpoll/settings.c switchpoll/settings.h \
	switchpoll/sink.h \
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
