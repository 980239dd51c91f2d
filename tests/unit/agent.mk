# SPDX-License-Identifier: Apache-2.0
agent_tests = tests/unit/check_flows tests/unit/check_interfaces
check_PROGRAMS += $(agent_tests)
TESTS += $(agent_tests)

agent_test_libs = agent/libftagent.a proto/libftproto.a lib/config/libftconfig.a $(IO_LIBS) \
	$(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) $(CHECK_LIBS)

tests_unit_check_flows_SOURCES = tests/unit/check_flows.c tests/unit/unit.h
tests_unit_check_flows_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_flows_LDADD = $(agent_test_libs)

tests_unit_check_interfaces_SOURCES = tests/unit/check_interfaces.c tests/unit/unit.h
tests_unit_check_interfaces_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_interfaces_LDADD = $(agent_test_libs)
