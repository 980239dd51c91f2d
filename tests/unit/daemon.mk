# SPDX-License-Identifier: Apache-2.0
daemon_tests = tests/unit/check_topology_file
check_PROGRAMS += $(daemon_tests)
TESTS += $(daemon_tests)

tests_unit_check_topology_file_SOURCES = tests/unit/check_topology_file.c tests/unit/unit.h
tests_unit_check_topology_file_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_topology_file_LDADD = daemon/libftdaemon.a lib/config/libftconfig.a \
	lib/fabric/libftfabric.a lib/base/libftbase.a $(YAML_LIBS) $(CHECK_LIBS)
