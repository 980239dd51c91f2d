# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += proto/libftproto.a
proto_libftproto_a_SOURCES = \
	proto/arena.c proto/arena.h \
	proto/batch.c proto/batch.h \
	proto/bounds.c proto/bounds.h \
	proto/chakra.c proto/chakra.h \
	proto/columns.c proto/columns.h \
	proto/columns_read.c \
	proto/json.c proto/json.h \
	proto/json_field.h \
	proto/json_plan.c proto/json_plan.h \
	proto/json_read.c \
	proto/loss.c proto/loss.h \
	proto/message.c proto/message.h \
	proto/packet.c proto/packet.h proto/packet_impl.h \
	proto/packet_link.c \
	proto/observed.c proto/observed.h \
	proto/plan_name.c proto/plan_name.h \
	proto/probe_request.c proto/probe_request.h \
	proto/ttl_answer.c proto/ttl_answer.h \
	proto/usid.c proto/usid.h \
	proto/withdrawal.c proto/withdrawal.h \
	proto/record.c proto/record.h \
	proto/schema.c proto/schema.h \
	proto/sflow.c proto/sflow.h \
	proto/sflow_record.c proto/sflow_record.h
nodist_proto_libftproto_a_SOURCES = proto/fabrictrace.pb-c.c proto/fabrictrace.pb-c.h
proto_libftproto_a_CFLAGS = $(AM_CFLAGS) -Wno-undef
BUILT_SOURCES += proto/fabrictrace.pb-c.c proto/fabrictrace.pb-c.h
CLEANFILES += proto/fabrictrace.pb-c.c proto/fabrictrace.pb-c.h

# The contract for consumers who read protobuf from Kafka.
protodir = $(pkgdatadir)
dist_proto_DATA = proto/fabrictrace.proto

proto/fabrictrace.pb-c.h: proto/fabrictrace.pb-c.c
	@test -f $@ || { rm -f $<; $(MAKE) $(AM_MAKEFLAGS) $<; }
proto/fabrictrace.pb-c.c: $(srcdir)/proto/fabrictrace.proto
	$(AM_V_GEN)$(MKDIR_P) proto && $(PROTOC_C) -I$(srcdir)/proto --c_out=proto $<
