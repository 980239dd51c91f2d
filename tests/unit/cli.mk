# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/unit/check_grid
TESTS += tests/unit/check_grid

tests_unit_check_grid_SOURCES = tests/unit/check_grid.c tests/unit/unit.h
tests_unit_check_grid_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_grid_LDADD = cli/libftcli.a lib/fabric/libftfabric.a lib/base/libftbase.a \
	$(CHECK_LIBS) -lm

