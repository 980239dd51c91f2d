# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += tests/unit/check_grid tests/unit/check_moment
TESTS += tests/unit/check_grid tests/unit/check_moment tests/unit/check_cli.py tests/unit/check_completion.py

tests_unit_check_grid_SOURCES = tests/unit/check_grid.c tests/unit/unit.h
tests_unit_check_grid_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_grid_LDADD = cli/libftcli.a lib/fabric/libftfabric.a lib/base/libftbase.a \
	$(CHECK_LIBS)

tests_unit_check_moment_SOURCES = tests/unit/check_moment.c tests/unit/unit.h
tests_unit_check_moment_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_moment_LDADD = cli/libftcli.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_show_digest
TESTS += tests/unit/check_show_digest
tests_unit_check_show_digest_SOURCES = tests/unit/check_show_digest.c tests/unit/unit.h
tests_unit_check_show_digest_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_show_digest_LDADD = cli/libftcli.a lib/fabric/libftfabric.a lib/base/libftbase.a \
	$(JANSSON_LIBS) $(CHECK_LIBS) -lm

# The program itself, against prepared answers of the daemon: the texts that it prints for them.
TESTS += tests/unit/check_cli_alone.py tests/unit/check_cli_chosen.py tests/unit/check_top.py
EXTRA_DIST += tests/unit/check_cli_alone.py tests/unit/check_cli_chosen.py tests/unit/check_top.py tests/unit/cli_rig.py
EXTRA_DIST += tests/unit/check_cli.py tests/unit/check_completion.py
cli_answers = doctor doctor-hosts doctor-none events events-all events-none explain explain-group \
	explain-inferred explain-job explain-lag explain-likely explain-link explain-link-lossy explain-lossy explain-multipath explain-networks explain-paired explain-partial explain-probed explain-unresolved imbalance imbalance-partial imbalance-seen history history-flow history-group links matrix paths qps qps-none diagnoses diagnoses-none hash hash-none spread spread-none rhythm rhythm-none plans plans-none moves moves-none probes probes-none \
	ranks ranks-none topology topology-export topology-samples
EXTRA_DIST += $(cli_answers:%=tests/unit/cli/%.json) $(cli_answers:%=tests/unit/cli/%.txt) \
	tests/unit/cli/top.txt
