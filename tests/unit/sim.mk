# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/unit/check_colour
TESTS += tests/unit/check_colour

tests_unit_check_colour_SOURCES = tests/unit/check_colour.c tests/unit/unit.h
tests_unit_check_colour_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_colour_LDADD = lib/sim/libftsim.a lib/fabric/libftfabric.a lib/base/libftbase.a \
	$(CHECK_LIBS)
