# SPDX-License-Identifier: Apache-2.0
io_tests = tests/unit/check_loop tests/unit/check_pcap
check_PROGRAMS += $(io_tests)
TESTS += $(io_tests)

tests_unit_check_loop_SOURCES = tests/unit/check_loop.c tests/unit/unit.h
tests_unit_check_loop_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_loop_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_pcap_SOURCES = tests/unit/check_pcap.c tests/unit/unit.h
tests_unit_check_pcap_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pcap_LDADD = $(IO_LIBS) $(CHECK_LIBS)
