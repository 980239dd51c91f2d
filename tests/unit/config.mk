# SPDX-License-Identifier: Apache-2.0
config_tests = tests/unit/check_asking tests/unit/check_budget tests/unit/check_options tests/unit/check_program tests/unit/check_yaml
check_PROGRAMS += $(config_tests)
TESTS += $(config_tests)

config_test_libs = lib/config/libftconfig.a lib/base/libftbase.a $(YAML_LIBS) $(CHECK_LIBS)

tests_unit_check_budget_SOURCES = tests/unit/check_budget.c tests/unit/unit.h
tests_unit_check_budget_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_budget_LDADD = $(config_test_libs)

tests_unit_check_options_SOURCES = tests/unit/check_options.c tests/unit/unit.h
tests_unit_check_options_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_options_LDADD = $(config_test_libs)

tests_unit_check_program_SOURCES = tests/unit/check_program.c tests/unit/unit.h
tests_unit_check_program_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_program_LDADD = $(config_test_libs)

tests_unit_check_yaml_SOURCES = tests/unit/check_yaml.c tests/unit/unit.h
tests_unit_check_yaml_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_yaml_LDADD = $(config_test_libs)

tests_unit_check_asking_SOURCES = tests/unit/check_asking.c tests/unit/unit.h
tests_unit_check_asking_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_asking_LDADD = $(config_test_libs)
