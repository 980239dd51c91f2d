# SPDX-License-Identifier: Apache-2.0
config_tests = tests/unit/check_yaml
check_PROGRAMS += $(config_tests)
TESTS += $(config_tests)

tests_unit_check_yaml_SOURCES = tests/unit/check_yaml.c tests/unit/unit.h
tests_unit_check_yaml_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_yaml_LDADD = lib/config/libftconfig.a lib/base/libftbase.a $(YAML_LIBS) \
	$(CHECK_LIBS)
