# SPDX-License-Identifier: Apache-2.0
diagnosis_tests = tests/unit/check_blame tests/unit/check_csv tests/unit/check_diagnosis tests/unit/check_diagnosis_tables tests/unit/check_pair_rate tests/unit/check_pair_rate_spans tests/unit/check_ras tests/unit/check_stalls tests/unit/check_stats tests/unit/check_table_clocks tests/unit/check_table_ends tests/unit/check_table_exchanges tests/unit/check_table_launches tests/unit/check_table_once tests/unit/check_table_order tests/unit/check_table_pairs tests/unit/check_table_plain tests/unit/check_table_rings tests/unit/check_tree tests/unit/check_wander
check_PROGRAMS += $(diagnosis_tests)
TESTS += $(diagnosis_tests)

tests_unit_check_blame_SOURCES = tests/unit/check_blame.c tests/unit/unit.h
tests_unit_check_blame_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_blame_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_csv_SOURCES = tests/unit/check_csv.c tests/unit/unit.h
tests_unit_check_csv_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_csv_LDADD = lib/diagnosis/libftdiagnosis.a lib/base/libftbase.a $(XXHASH_LIBS) \
	$(CHECK_LIBS) -lm

tests_unit_check_diagnosis_SOURCES = tests/unit/check_diagnosis.c tests/unit/table_rig.h tests/unit/unit.h
tests_unit_check_diagnosis_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_diagnosis_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_diagnosis_tables_SOURCES = tests/unit/check_diagnosis_tables.c tests/unit/table_rig.h tests/unit/unit.h
tests_unit_check_diagnosis_tables_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_diagnosis_tables_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_pair_rate_spans_SOURCES = tests/unit/check_pair_rate_spans.c tests/unit/unit.h
tests_unit_check_pair_rate_spans_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pair_rate_spans_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_pair_rate_SOURCES = tests/unit/check_pair_rate.c tests/unit/unit.h
tests_unit_check_pair_rate_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pair_rate_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_ras_SOURCES = tests/unit/check_ras.c tests/unit/ras_answer.h tests/unit/unit.h
tests_unit_check_ras_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ras_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_stalls_SOURCES = tests/unit/check_stalls.c tests/unit/unit.h
tests_unit_check_stalls_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_stalls_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_stats_SOURCES = tests/unit/check_stats.c tests/unit/unit.h
tests_unit_check_stats_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_stats_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_table_clocks_SOURCES = tests/unit/check_table_clocks.c tests/unit/unit.h
tests_unit_check_table_clocks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_clocks_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_table_ends_SOURCES = tests/unit/check_table_ends.c tests/unit/table_rig.h tests/unit/unit.h
tests_unit_check_table_ends_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_ends_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_table_exchanges_SOURCES = tests/unit/check_table_exchanges.c tests/unit/table_rig.h tests/unit/unit.h
tests_unit_check_table_exchanges_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_exchanges_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_table_launches_SOURCES = tests/unit/check_table_launches.c tests/unit/table_rig.h tests/unit/unit.h
tests_unit_check_table_launches_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_launches_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_table_once_SOURCES = tests/unit/check_table_once.c tests/unit/table_rig.h tests/unit/unit.h
tests_unit_check_table_once_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_once_LDADD = $(tests_unit_check_csv_LDADD)
tests_unit_check_table_order_SOURCES = tests/unit/check_table_order.c tests/unit/table_rig.h tests/unit/unit.h
tests_unit_check_table_order_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_order_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_table_pairs_SOURCES = tests/unit/check_table_pairs.c tests/unit/table_rig.h tests/unit/unit.h
tests_unit_check_table_pairs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_pairs_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_table_plain_SOURCES = tests/unit/check_table_plain.c tests/unit/table_rig.h tests/unit/unit.h
tests_unit_check_table_plain_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_plain_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_table_rings_SOURCES = tests/unit/check_table_rings.c tests/unit/unit.h
tests_unit_check_table_rings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_table_rings_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_tree_SOURCES = tests/unit/check_tree.c tests/unit/unit.h
tests_unit_check_tree_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_tree_LDADD = $(tests_unit_check_csv_LDADD)

tests_unit_check_wander_SOURCES = tests/unit/check_wander.c tests/unit/unit.h
tests_unit_check_wander_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_wander_LDADD = $(tests_unit_check_csv_LDADD)
