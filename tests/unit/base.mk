# SPDX-License-Identifier: Apache-2.0
base_tests = tests/unit/check_bound tests/unit/check_grow tests/unit/check_lines tests/unit/check_log tests/unit/check_mix tests/unit/check_near tests/unit/check_prefix tests/unit/check_prometheus tests/unit/check_reader tests/unit/check_secret tests/unit/check_table tests/unit/check_task tests/unit/check_text
check_PROGRAMS += $(base_tests)
TESTS += $(base_tests)

tests_unit_check_prometheus_SOURCES = tests/unit/check_prometheus.c tests/unit/unit.h
tests_unit_check_prometheus_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_prometheus_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_prefix_SOURCES = tests/unit/check_prefix.c tests/unit/unit.h
tests_unit_check_prefix_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_prefix_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_bound_SOURCES = tests/unit/check_bound.c tests/unit/unit.h
tests_unit_check_bound_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_bound_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_grow_SOURCES = tests/unit/check_grow.c tests/unit/unit.h
tests_unit_check_grow_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_grow_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_reader_SOURCES = tests/unit/check_reader.c tests/unit/unit.h
tests_unit_check_reader_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_reader_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_table_SOURCES = tests/unit/check_table.c tests/unit/unit.h
tests_unit_check_table_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_text_SOURCES = tests/unit/check_text.c tests/unit/unit.h
tests_unit_check_text_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_text_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_fortify
TESTS += tests/unit/check_fortify
tests_unit_check_fortify_SOURCES = tests/unit/check_fortify.c tests/unit/unit.h
tests_unit_check_fortify_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -DFT_FORTIFY='"$(FORTIFY)"'
tests_unit_check_fortify_LDADD = $(CHECK_LIBS)

tests_unit_check_lines_SOURCES = tests/unit/check_lines.c tests/unit/unit.h
tests_unit_check_lines_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_lines_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_log_SOURCES = tests/unit/check_log.c tests/unit/unit.h
tests_unit_check_log_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_log_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_mix_SOURCES = tests/unit/check_mix.c tests/unit/unit.h
tests_unit_check_mix_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_mix_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_near_SOURCES = tests/unit/check_near.c tests/unit/unit.h
tests_unit_check_near_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_near_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_secret_SOURCES = tests/unit/check_secret.c tests/unit/unit.h
tests_unit_check_secret_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_secret_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_task_SOURCES = tests/unit/check_task.c tests/unit/unit.h
tests_unit_check_task_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_task_LDADD = lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_digest
TESTS += tests/unit/check_digest
tests_unit_check_digest_SOURCES = tests/unit/check_digest.c tests/unit/unit.h
tests_unit_check_digest_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_digest_LDADD = lib/base/libftbase.a $(XXHASH_LIBS) $(CHECK_LIBS)
