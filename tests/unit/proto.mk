# SPDX-License-Identifier: Apache-2.0
proto_tests = tests/unit/check_packet tests/unit/check_sflow
check_PROGRAMS += $(proto_tests)
TESTS += $(proto_tests)
proto_test_libs = proto/libftproto.a lib/base/libftbase.a $(PROTOBUFC_LIBS) $(JANSSON_LIBS) \
	$(CHECK_LIBS)

tests_unit_check_packet_SOURCES = tests/unit/check_packet.c tests/unit/unit.h
tests_unit_check_packet_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_packet_LDADD = $(proto_test_libs)

tests_unit_check_sflow_SOURCES = tests/unit/check_sflow.c tests/unit/unit.h
tests_unit_check_sflow_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sflow_LDADD = $(proto_test_libs)
