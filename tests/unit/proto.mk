# SPDX-License-Identifier: Apache-2.0
proto_tests = tests/unit/check_json tests/unit/check_loss tests/unit/check_packet tests/unit/check_tunnels \
	tests/unit/check_srv6 tests/unit/check_usid tests/unit/check_record tests/unit/check_sflow tests/unit/check_sflow_usual \
	tests/unit/check_sflow_counters tests/unit/check_bounds tests/unit/check_columns \
	tests/unit/check_message tests/unit/check_withdrawal
check_PROGRAMS += $(proto_tests)
TESTS += $(proto_tests)
proto_test_libs = proto/libftproto.a lib/base/libftbase.a $(PROTOBUFC_LIBS) $(JANSSON_LIBS) \
	$(CHECK_LIBS)

tests_unit_check_message_SOURCES = tests/unit/check_message.c tests/unit/unit.h
tests_unit_check_message_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_message_LDADD = $(proto_test_libs)

tests_unit_check_withdrawal_SOURCES = tests/unit/check_withdrawal.c tests/unit/unit.h
tests_unit_check_withdrawal_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_withdrawal_LDADD = $(proto_test_libs)

tests_unit_check_bounds_SOURCES = tests/unit/check_bounds.c tests/unit/unit.h
tests_unit_check_bounds_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_bounds_LDADD = $(proto_test_libs)

tests_unit_check_columns_SOURCES = tests/unit/check_columns.c tests/unit/unit.h
tests_unit_check_columns_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_columns_LDADD = $(proto_test_libs) $(XXHASH_LIBS)

tests_unit_check_json_SOURCES = tests/unit/check_json.c tests/unit/unit.h
tests_unit_check_json_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_json_LDADD = $(proto_test_libs)

tests_unit_check_loss_SOURCES = tests/unit/check_loss.c tests/unit/balanced.h tests/unit/unit.h
tests_unit_check_loss_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_loss_LDADD = $(proto_test_libs)

tests_unit_check_tunnels_SOURCES = tests/unit/check_tunnels.c tests/unit/packet_bytes.h \
	tests/unit/unit.h
tests_unit_check_tunnels_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_tunnels_LDADD = $(proto_test_libs)

tests_unit_check_srv6_SOURCES = tests/unit/check_srv6.c tests/unit/packet_bytes.h \
	tests/unit/unit.h
tests_unit_check_srv6_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_srv6_LDADD = $(proto_test_libs)

tests_unit_check_usid_SOURCES = tests/unit/check_usid.c tests/unit/unit.h
tests_unit_check_usid_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_usid_LDADD = $(proto_test_libs)

tests_unit_check_packet_SOURCES = tests/unit/check_packet.c tests/unit/packet_bytes.h \
	tests/unit/unit.h
tests_unit_check_packet_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_packet_LDADD = $(proto_test_libs)

tests_unit_check_record_SOURCES = tests/unit/check_record.c tests/unit/unit.h
tests_unit_check_record_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_record_LDADD = $(proto_test_libs)

tests_unit_check_sflow_SOURCES = tests/unit/check_sflow.c tests/unit/sflow_bytes.h tests/unit/unit.h
tests_unit_check_sflow_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sflow_LDADD = $(proto_test_libs)

tests_unit_check_sflow_usual_SOURCES = tests/unit/check_sflow_usual.c tests/unit/unit.h
tests_unit_check_sflow_usual_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sflow_usual_LDADD = $(proto_test_libs)

tests_unit_check_sflow_counters_SOURCES = tests/unit/check_sflow_counters.c \
	tests/unit/sflow_bytes.h tests/unit/unit.h
tests_unit_check_sflow_counters_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sflow_counters_LDADD = $(proto_test_libs)

check_PROGRAMS += tests/unit/check_chakra
TESTS += tests/unit/check_chakra
tests_unit_check_chakra_SOURCES = tests/unit/check_chakra.c tests/unit/unit.h
tests_unit_check_chakra_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_chakra_LDADD = proto/libftproto.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_arena
TESTS += tests/unit/check_arena
tests_unit_check_arena_SOURCES = tests/unit/check_arena.c tests/unit/unit.h
tests_unit_check_arena_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_arena_LDADD = $(proto_test_libs) $(XXHASH_LIBS)

check_PROGRAMS += tests/unit/check_observed
TESTS += tests/unit/check_observed
tests_unit_check_observed_SOURCES = tests/unit/check_observed.c tests/unit/unit.h
tests_unit_check_observed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_observed_LDADD = $(proto_test_libs) $(XXHASH_LIBS)
