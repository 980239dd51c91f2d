# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/unit/check_colour
TESTS += tests/unit/check_colour

tests_unit_check_colour_SOURCES = tests/unit/check_colour.c tests/unit/unit.h
tests_unit_check_colour_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_colour_LDADD = lib/sim/libftsim.a lib/fabric/libftfabric.a lib/base/libftbase.a \
	$(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_hashed
TESTS += tests/unit/check_hashed
tests_unit_check_hashed_SOURCES = tests/unit/check_hashed.c tests/unit/unit.h tests/unit/leafspine.h
tests_unit_check_hashed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_hashed_LDADD = lib/sim/libftsim.a lib/fabric/libftfabric.a lib/base/libftbase.a \
	$(XXHASH_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_clos
TESTS += tests/unit/check_clos
tests_unit_check_clos_SOURCES = tests/unit/check_clos.c tests/unit/unit.h tests/unit/leafspine.h
tests_unit_check_clos_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_clos_LDADD = lib/sim/libftsim.a lib/fabric/libftfabric.a lib/base/libftbase.a \
	$(XXHASH_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_placement
TESTS += tests/unit/check_placement
tests_unit_check_placement_SOURCES = tests/unit/check_placement.c tests/unit/unit.h tests/unit/leafspine.h
tests_unit_check_placement_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_placement_LDADD = lib/sim/libftsim.a lib/fabric/libftfabric.a lib/base/libftbase.a \
	$(XXHASH_LIBS) $(CHECK_LIBS)
