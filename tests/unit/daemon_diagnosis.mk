# SPDX-License-Identifier: Apache-2.0
# Of daemon/diagnosis.
check_PROGRAMS += tests/unit/check_launches
TESTS += tests/unit/check_launches
tests_unit_check_launches_SOURCES = tests/unit/check_launches.c tests/unit/unit.h
tests_unit_check_launches_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_launches_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_pair_rates
TESTS += tests/unit/check_pair_rates
tests_unit_check_pair_rates_SOURCES = tests/unit/check_pair_rates.c tests/unit/unit.h
tests_unit_check_pair_rates_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pair_rates_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/check_pair_rates_kept
TESTS += tests/unit/check_pair_rates_kept
tests_unit_check_pair_rates_kept_SOURCES = tests/unit/check_pair_rates_kept.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_pair_rates_kept_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pair_rates_kept_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_stall
TESTS += tests/unit/check_stall
tests_unit_check_stall_SOURCES = tests/unit/check_stall.c tests/unit/unit.h
tests_unit_check_stall_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_stall_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/check_second
TESTS += tests/unit/check_second
tests_unit_check_second_SOURCES = tests/unit/check_second.c tests/unit/unit.h
tests_unit_check_second_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_second_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_cut
TESTS += tests/unit/check_cut
tests_unit_check_cut_SOURCES = tests/unit/check_cut.c tests/unit/unit.h
tests_unit_check_cut_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_cut_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_pair_links_path \
	-Wl,--wrap=ft_join_find -Wl,--wrap=ft_join_topology -Wl,--wrap=ft_topology_port \
	-Wl,--wrap=ft_topology_switch
tests_unit_check_cut_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_downed
TESTS += tests/unit/check_downed
tests_unit_check_downed_SOURCES = tests/unit/check_downed.c tests/unit/counters_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_downed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_downed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_pair_links_path \
	-Wl,--wrap=ft_join_find -Wl,--wrap=ft_pair_links_tuple
tests_unit_check_downed_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_resent
TESTS += tests/unit/check_resent
tests_unit_check_resent_SOURCES = tests/unit/check_resent.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_resent_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_resent_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_join_topology
tests_unit_check_resent_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_witness
TESTS += tests/unit/check_witness
tests_unit_check_witness_SOURCES = tests/unit/check_witness.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_witness_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_witness_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_pair_links_path \
	-Wl,--wrap=ft_counters_window -Wl,--wrap=ft_counters_speed_bps -Wl,--wrap=ft_congestion_of \
	-Wl,--wrap=ft_join_topology -Wl,--wrap=ft_join_depths -Wl,--wrap=ft_counters_state
tests_unit_check_witness_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_circle
TESTS += tests/unit/check_circle
tests_unit_check_circle_SOURCES = tests/unit/check_circle.c tests/unit/unit.h
tests_unit_check_circle_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_circle_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_standing
TESTS += tests/unit/check_standing
tests_unit_check_standing_SOURCES = tests/unit/check_standing.c tests/unit/unit.h
tests_unit_check_standing_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_standing_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_stand
TESTS += tests/unit/check_stand
tests_unit_check_stand_SOURCES = tests/unit/check_stand.c tests/unit/unit.h
tests_unit_check_stand_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_stand_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_diagnoser
TESTS += tests/unit/check_diagnoser
tests_unit_check_diagnoser_SOURCES = tests/unit/check_diagnoser.c tests/unit/unit.h
tests_unit_check_diagnoser_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_diagnoser_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc \
	-Wl,--wrap=realloc -Wl,--wrap=free
tests_unit_check_diagnoser_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_diagnosis_clocks
TESTS += tests/unit/check_diagnosis_clocks
tests_unit_check_diagnosis_clocks_SOURCES = tests/unit/check_diagnosis_clocks.c tests/unit/unit.h
tests_unit_check_diagnosis_clocks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_diagnosis_clocks_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_gather
TESTS += tests/unit/check_gather
tests_unit_check_gather_SOURCES = tests/unit/check_gather.c tests/unit/unit.h
tests_unit_check_gather_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_gather_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_diagnoser_known
TESTS += tests/unit/check_diagnoser_known
tests_unit_check_diagnoser_known_SOURCES = tests/unit/check_diagnoser_known.c tests/unit/unit.h
tests_unit_check_diagnoser_known_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_diagnoser_known_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_diagnoser_large
TESTS += tests/unit/check_diagnoser_large
tests_unit_check_diagnoser_large_SOURCES = tests/unit/check_diagnoser_large.c tests/unit/unit.h
tests_unit_check_diagnoser_large_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_diagnoser_large_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=qsort -Wl,--wrap=qsort_r \
	-Wl,--wrap=ft_table_find -Wl,--wrap=ft_table_insert -Wl,--wrap=ft_quantile
tests_unit_check_diagnoser_large_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_rhythm
TESTS += tests/unit/check_rhythm
tests_unit_check_rhythm_SOURCES = tests/unit/check_rhythm.c tests/unit/unit.h
tests_unit_check_rhythm_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rhythm_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/check_functions
TESTS += tests/unit/check_functions
tests_unit_check_functions_SOURCES = tests/unit/check_functions.c tests/unit/unit.h
tests_unit_check_functions_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_functions_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_recent
TESTS += tests/unit/check_recent
tests_unit_check_recent_SOURCES = tests/unit/check_recent.c tests/unit/unit.h
tests_unit_check_recent_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_recent_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_delays
TESTS += tests/unit/check_delays
tests_unit_check_delays_SOURCES = tests/unit/check_delays.c tests/unit/unit.h
tests_unit_check_delays_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_delays_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_delays_judge
TESTS += tests/unit/check_delays_judge
tests_unit_check_delays_judge_SOURCES = tests/unit/check_delays_judge.c tests/unit/unit.h
tests_unit_check_delays_judge_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_delays_judge_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/check_stalled
TESTS += tests/unit/check_stalled
tests_unit_check_stalled_SOURCES = tests/unit/check_stalled.c tests/unit/unit.h
tests_unit_check_stalled_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_stalled_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_pair_links_path
tests_unit_check_stalled_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_blamed
TESTS += tests/unit/check_blamed
tests_unit_check_blamed_SOURCES = tests/unit/check_blamed.c tests/unit/unit.h
tests_unit_check_blamed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_blamed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_delays_judge -Wl,--wrap=ft_stalled_find \
	-Wl,--wrap=ft_pair_links_path
tests_unit_check_blamed_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)
