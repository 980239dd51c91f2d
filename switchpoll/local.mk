# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += switchpoll/libftswitchpoll.a
switchpoll_libftswitchpoll_a_SOURCES = \
	switchpoll/exporters.c switchpoll/exporters.h \
	switchpoll/fold.c switchpoll/fold.h \
	switchpoll/ingest.c switchpoll/ingest.h \
	switchpoll/loss.c switchpoll/loss.h \
	switchpoll/output.c switchpoll/output.h \
	switchpoll/ports.c switchpoll/ports.h \
	switchpoll/sequence.c switchpoll/sequence.h \
	switchpoll/sink.h \
	switchpoll/telemetry.c switchpoll/telemetry.h \
	switchpoll/udp.c switchpoll/udp.h

# What fabrictrace-switchpoll and its tests link.
SWITCHPOLL_LIBS = switchpoll/libftswitchpoll.a proto/libftproto.a lib/config/libftconfig.a \
	$(IO_LIBS) $(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) -lm
