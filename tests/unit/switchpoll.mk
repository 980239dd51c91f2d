# SPDX-License-Identifier: Apache-2.0
switchpoll_tests = tests/unit/check_sequence tests/unit/check_pace tests/unit/check_before tests/unit/check_exporters tests/unit/check_fold tests/unit/check_fold_networks tests/unit/check_ingest tests/unit/check_ports tests/unit/check_udp tests/unit/check_output
check_PROGRAMS += $(switchpoll_tests)
TESTS += $(switchpoll_tests)

tests_unit_check_pace_SOURCES = tests/unit/check_pace.c tests/unit/unit.h
tests_unit_check_pace_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pace_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)
tests_unit_check_sequence_SOURCES = tests/unit/check_sequence.c tests/unit/unit.h
tests_unit_check_sequence_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sequence_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_exporters_SOURCES = tests/unit/check_exporters.c tests/unit/unit.h
tests_unit_check_exporters_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_exporters_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_before_SOURCES = tests/unit/check_before.c tests/unit/unit.h
tests_unit_check_before_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_before_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_fold_networks_SOURCES = tests/unit/check_fold_networks.c tests/unit/unit.h
tests_unit_check_fold_networks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_fold_networks_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_fold_SOURCES = tests/unit/check_fold.c tests/unit/unit.h
tests_unit_check_fold_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_fold_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_ingest_SOURCES = tests/unit/check_ingest.c tests/unit/unit.h
tests_unit_check_ingest_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ingest_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_ports_SOURCES = tests/unit/check_ports.c tests/unit/unit.h
tests_unit_check_ports_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ports_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_udp_SOURCES = tests/unit/check_udp.c tests/unit/unit.h
tests_unit_check_udp_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_udp_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_output_SOURCES = tests/unit/check_output.c tests/unit/unit.h
tests_unit_check_output_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_output_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

snmp_tests = tests/unit/check_snmp_walk tests/unit/check_snmp_counters tests/unit/check_snmp_device \
	tests/unit/check_snmp_device_lldp tests/unit/check_snmp_targets tests/unit/check_snmp_poll
check_PROGRAMS += $(snmp_tests)
TESTS += $(snmp_tests)

tests_unit_check_snmp_walk_SOURCES = tests/unit/check_snmp_walk.c tests/unit/unit.h tests/unit/snmp_answers.h
tests_unit_check_snmp_walk_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snmp_walk_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_snmp_counters_SOURCES = tests/unit/check_snmp_counters.c tests/unit/unit.h
tests_unit_check_snmp_counters_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snmp_counters_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_snmp_device_SOURCES = tests/unit/check_snmp_device.c tests/unit/snmp_device_rig.h \
	tests/unit/unit.h tests/unit/snmp_answers.h
tests_unit_check_snmp_device_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snmp_device_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_snmp_device_lldp_SOURCES = tests/unit/check_snmp_device_lldp.c \
	tests/unit/snmp_device_rig.h tests/unit/unit.h tests/unit/snmp_answers.h
tests_unit_check_snmp_device_lldp_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snmp_device_lldp_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_snmp_targets_SOURCES = tests/unit/check_snmp_targets.c tests/unit/unit.h
tests_unit_check_snmp_targets_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snmp_targets_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)

tests_unit_check_snmp_poll_SOURCES = tests/unit/check_snmp_poll.c tests/unit/unit.h tests/unit/snmp_answers.h
tests_unit_check_snmp_poll_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snmp_poll_LDADD = $(SWITCHPOLL_LIBS) $(CHECK_LIBS)
