# SPDX-License-Identifier: Apache-2.0
daemon_tests = tests/unit/check_topology_file tests/unit/check_lag tests/unit/check_join tests/unit/check_window \
	tests/unit/check_congestion \
	tests/unit/check_discovery tests/unit/check_counters tests/unit/check_outages tests/unit/check_sampled tests/unit/check_losses \
	tests/unit/check_clocks tests/unit/check_closing tests/unit/check_group_numbers tests/unit/check_group_progress
check_PROGRAMS += $(daemon_tests)
TESTS += $(daemon_tests)

tests_unit_check_topology_file_SOURCES = tests/unit/check_topology_file.c tests/unit/unit.h
tests_unit_check_topology_file_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_topology_file_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_group_progress_SOURCES = tests/unit/check_group_progress.c tests/unit/unit.h
tests_unit_check_group_progress_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_group_progress_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_group_numbers_SOURCES = tests/unit/check_group_numbers.c tests/unit/unit.h
tests_unit_check_group_numbers_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_group_numbers_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_lag_SOURCES = tests/unit/check_lag.c tests/unit/unit.h
tests_unit_check_lag_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_lag_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_join_SOURCES = tests/unit/check_join.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_join_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_join_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_window_SOURCES = tests/unit/check_window.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/window_rig.h
tests_unit_check_window_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_window_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_congestion_SOURCES = tests/unit/check_congestion.c tests/unit/unit.h
tests_unit_check_congestion_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_congestion_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_group_reader
TESTS += tests/unit/check_group_reader
tests_unit_check_group_reader_SOURCES = tests/unit/check_group_reader.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_group_reader_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_group_reader_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_kafka_consumer_new \
	-Wl,--wrap=ft_kafka_consumer_free -Wl,--wrap=ft_kafka_commit
tests_unit_check_group_reader_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_sink_file
TESTS += tests/unit/check_sink_file
tests_unit_check_sink_file_SOURCES = tests/unit/check_sink_file.c tests/unit/unit.h
tests_unit_check_sink_file_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sink_file_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_topology_diff
TESTS += tests/unit/check_topology_diff
tests_unit_check_topology_diff_SOURCES = tests/unit/check_topology_diff.c tests/unit/unit.h
tests_unit_check_topology_diff_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_topology_diff_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_intake
TESTS += tests/unit/check_intake
tests_unit_check_intake_SOURCES = tests/unit/check_intake.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_intake_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_intake_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_intake_numbers
TESTS += tests/unit/check_intake_numbers
tests_unit_check_intake_numbers_SOURCES = tests/unit/check_intake_numbers.c tests/unit/unit.h
tests_unit_check_intake_numbers_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_intake_numbers_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_partial_sums
TESTS += tests/unit/check_partial_sums
tests_unit_check_partial_sums_SOURCES = tests/unit/check_partial_sums.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_partial_sums_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_partial_sums_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_partials
TESTS += tests/unit/check_partials
tests_unit_check_partials_SOURCES = tests/unit/check_partials.c \
	tests/unit/leafspine.h tests/unit/unit.h tests/unit/window_rig.h
tests_unit_check_partials_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_partials_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_job_figures
TESTS += tests/unit/check_job_figures
tests_unit_check_job_figures_SOURCES = tests/unit/check_job_figures.c tests/unit/unit.h
tests_unit_check_job_figures_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_job_figures_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_ranks
TESTS += tests/unit/check_ranks
tests_unit_check_ranks_SOURCES = tests/unit/check_ranks.c tests/unit/ranks_rig.h tests/unit/unit.h
tests_unit_check_ranks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ranks_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_ranks_room
TESTS += tests/unit/check_ranks_room
tests_unit_check_ranks_room_SOURCES = tests/unit/check_ranks_room.c tests/unit/ranks_rig.h \
	tests/unit/unit.h
tests_unit_check_ranks_room_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ranks_room_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_slowest
TESTS += tests/unit/check_slowest
tests_unit_check_slowest_SOURCES = tests/unit/check_slowest.c tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_slowest_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_slowest_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_discovery_SOURCES = tests/unit/check_discovery.c tests/unit/discovery_rig.h tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_discovery_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_discovery_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_discovery_hosts
TESTS += tests/unit/check_discovery_hosts
tests_unit_check_discovery_hosts_SOURCES = tests/unit/check_discovery_hosts.c \
	tests/unit/discovery_rig.h tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_discovery_hosts_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_discovery_hosts_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_discovery_unheard
TESTS += tests/unit/check_discovery_unheard
tests_unit_check_discovery_unheard_SOURCES = tests/unit/check_discovery_unheard.c \
	tests/unit/discovery_rig.h tests/unit/leafspine.h tests/unit/unit.h tests/unit/wiring_rig.h
tests_unit_check_discovery_unheard_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_discovery_unheard_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_reports
TESTS += tests/unit/check_reports
tests_unit_check_reports_SOURCES = tests/unit/check_reports.c tests/unit/unit.h
tests_unit_check_reports_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_reports_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_down_ports tests/unit/check_discovery_ports
TESTS += tests/unit/check_down_ports tests/unit/check_discovery_ports
tests_unit_check_discovery_ports_SOURCES = tests/unit/check_discovery_ports.c \
	tests/unit/discovery_rig.h tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_discovery_ports_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_discovery_ports_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)
tests_unit_check_down_ports_SOURCES = tests/unit/check_down_ports.c tests/unit/unit.h
tests_unit_check_down_ports_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_down_ports_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_discovery_shut
TESTS += tests/unit/check_discovery_shut
tests_unit_check_discovery_shut_SOURCES = tests/unit/check_discovery_shut.c \
	tests/unit/discovery_rig.h tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_discovery_shut_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_discovery_shut_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_discovery_blind tests/unit/check_discovery_blind_2x2
TESTS += tests/unit/check_discovery_blind tests/unit/check_discovery_blind_2x2
tests_unit_check_discovery_blind_SOURCES = tests/unit/check_discovery_blind.c \
	tests/unit/discovery_rig.h tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_discovery_blind_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_discovery_blind_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)
tests_unit_check_discovery_blind_2x2_SOURCES = $(tests_unit_check_discovery_blind_SOURCES)
tests_unit_check_discovery_blind_2x2_CPPFLAGS = $(AM_CPPFLAGS) -DLEAVES=2 -DSPINES=2
tests_unit_check_discovery_blind_2x2_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_discovery_blind_2x2_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_counters_SOURCES = tests/unit/check_counters.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/counters_rig.h
tests_unit_check_counters_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_counters_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_counters_published
TESTS += tests/unit/check_counters_published
tests_unit_check_counters_published_SOURCES = tests/unit/check_counters_published.c \
	tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/counters_rig.h
tests_unit_check_counters_published_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_counters_published_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_pairing
TESTS += tests/unit/check_pairing
tests_unit_check_pairing_SOURCES = tests/unit/check_pairing.c tests/unit/balanced.h tests/unit/pairing_rig.h \
	tests/unit/unit.h
tests_unit_check_pairing_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pairing_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_pairing_random
TESTS += tests/unit/check_pairing_random
tests_unit_check_pairing_random_SOURCES = tests/unit/check_pairing_random.c \
	tests/unit/pairing_rig.h tests/unit/unit.h
tests_unit_check_pairing_random_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pairing_random_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_pairing_bounds
TESTS += tests/unit/check_pairing_bounds
tests_unit_check_pairing_bounds_SOURCES = tests/unit/check_pairing_bounds.c tests/unit/pairing_rig.h tests/unit/unit.h
tests_unit_check_pairing_bounds_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pairing_bounds_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_pairing_ends
TESTS += tests/unit/check_pairing_ends
tests_unit_check_pairing_ends_SOURCES = tests/unit/check_pairing_ends.c tests/unit/balanced.h \
	tests/unit/pairing_rig.h \
	tests/unit/unit.h
tests_unit_check_pairing_ends_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pairing_ends_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

# The poller's sums, and what the daemon makes of them.
check_PROGRAMS += tests/unit/check_numbers
TESTS += tests/unit/check_numbers
tests_unit_check_numbers_SOURCES = tests/unit/check_numbers.c tests/unit/unit.h
tests_unit_check_numbers_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_numbers_LDADD = switchpoll/libftswitchpoll.a $(DAEMON_LIBS) $(CHECK_LIBS) -lm

tests_unit_check_outages_SOURCES = tests/unit/check_outages.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_outages_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_outages_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)
tests_unit_check_sampled_SOURCES = tests/unit/check_sampled.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_sampled_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sampled_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_losses_SOURCES = tests/unit/check_losses.c tests/unit/unit.h
tests_unit_check_losses_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_losses_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_closing_SOURCES = tests/unit/check_closing.c tests/unit/join_rig.h tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_closing_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_closing_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_clocks_SOURCES = tests/unit/check_clocks.c tests/unit/unit.h
tests_unit_check_clocks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_clocks_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_agents
TESTS += tests/unit/check_agents
tests_unit_check_agents_SOURCES = tests/unit/check_agents.c tests/unit/unit.h
tests_unit_check_agents_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_agents_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_identity
TESTS += tests/unit/check_identity
tests_unit_check_identity_SOURCES = tests/unit/check_identity.c tests/unit/unit.h
tests_unit_check_identity_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_identity_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_ageing
TESTS += tests/unit/check_ageing
tests_unit_check_ageing_SOURCES = tests/unit/check_ageing.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_ageing_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ageing_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_discovery_large
TESTS += tests/unit/check_discovery_large
tests_unit_check_discovery_large_SOURCES = tests/unit/check_discovery_large.c \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_discovery_large_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_discovery_large_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_table_find \
	-Wl,--wrap=ft_table_insert -Wl,--wrap=ft_table_next
tests_unit_check_discovery_large_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_discovery_aggregates
TESTS += tests/unit/check_discovery_aggregates
tests_unit_check_discovery_aggregates_SOURCES = tests/unit/check_discovery_aggregates.c \
	tests/unit/discovery_rig.h tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_discovery_aggregates_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_discovery_aggregates_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_answers
TESTS += tests/unit/check_answers
tests_unit_check_answers_SOURCES = tests/unit/check_answers.c tests/unit/answer_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_answers_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_answers_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_explain
TESTS += tests/unit/check_explain
tests_unit_check_explain_SOURCES = tests/unit/check_explain.c tests/unit/answer_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_explain_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_explain_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_incident
TESTS += tests/unit/check_incident
tests_unit_check_incident_SOURCES = tests/unit/check_incident.c tests/unit/unit.h
tests_unit_check_incident_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_incident_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)
check_PROGRAMS += tests/unit/check_sorted
TESTS += tests/unit/check_sorted
tests_unit_check_sorted_SOURCES = tests/unit/check_sorted.c tests/unit/answer_rig.h \
	tests/unit/leafspine.h tests/unit/pages_rig.h tests/unit/unit.h
tests_unit_check_sorted_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sorted_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_hashes_gone
TESTS += tests/unit/check_hashes_gone
tests_unit_check_hashes_gone_SOURCES = tests/unit/check_hashes_gone.c tests/unit/join_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_hashes_gone_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_hashes_gone_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_hashes_why
TESTS += tests/unit/check_hashes_why
tests_unit_check_hashes_why_SOURCES = tests/unit/check_hashes_why.c tests/unit/switch_hashes.h tests/unit/unit.h
tests_unit_check_hashes_why_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_hashes_why_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_hashes_grown
TESTS += tests/unit/check_hashes_grown
tests_unit_check_hashes_grown_SOURCES = tests/unit/check_hashes_grown.c \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_hashes_grown_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_hashes_grown_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_flow_clumps
TESTS += tests/unit/check_flow_clumps
tests_unit_check_flow_clumps_SOURCES = tests/unit/check_flow_clumps.c tests/unit/join_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_flow_clumps_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_flow_clumps_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_spread_qps
TESTS += tests/unit/check_spread_qps
tests_unit_check_spread_qps_SOURCES = tests/unit/check_spread_qps.c tests/unit/join_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_spread_qps_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_spread_qps_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_spread_kept
TESTS += tests/unit/check_spread_kept
tests_unit_check_spread_kept_SOURCES = tests/unit/check_spread_kept.c tests/unit/unit.h
tests_unit_check_spread_kept_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_spread_kept_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_pages
TESTS += tests/unit/check_pages
tests_unit_check_pages_SOURCES = tests/unit/check_pages.c tests/unit/answer_rig.h \
	tests/unit/leafspine.h tests/unit/pages_rig.h tests/unit/unit.h
tests_unit_check_pages_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pages_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_port_marks
TESTS += tests/unit/check_port_marks
tests_unit_check_port_marks_SOURCES = tests/unit/check_port_marks.c tests/unit/join_rig.h \
	tests/unit/unit.h
tests_unit_check_port_marks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_port_marks_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_slices
TESTS += tests/unit/check_slices
tests_unit_check_slices_SOURCES = tests/unit/check_slices.c tests/unit/answer_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_slices_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_slices_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_counters_known \
	-Wl,--wrap=ft_counters_health -Wl,--wrap=ft_pairing_next -Wl,--wrap=ft_pipeline_next_loss \
	-Wl,--wrap=ft_ranks_next_member -Wl,--wrap=ft_events_next
tests_unit_check_slices_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_history
TESTS += tests/unit/check_history
tests_unit_check_history_SOURCES = tests/unit/check_history.c tests/unit/unit.h
tests_unit_check_history_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_history_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_keeper
TESTS += tests/unit/check_keeper
tests_unit_check_keeper_SOURCES = tests/unit/check_keeper.c tests/unit/history_file.h \
    tests/unit/unit.h
tests_unit_check_keeper_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_keeper_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_snapshot
TESTS += tests/unit/check_snapshot
tests_unit_check_snapshot_SOURCES = tests/unit/check_snapshot.c tests/unit/history_file.h \
    tests/unit/unit.h
tests_unit_check_snapshot_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snapshot_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

# What is made of flows and published, each module alone.
made_tests = tests/unit/check_names tests/unit/check_events tests/unit/check_publish tests/unit/check_loads \
	tests/unit/check_collisions tests/unit/check_emit
check_PROGRAMS += $(made_tests)
TESTS += $(made_tests)

tests_unit_check_names_SOURCES = tests/unit/check_names.c tests/unit/unit.h
tests_unit_check_names_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_names_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_events_SOURCES = tests/unit/check_events.c tests/unit/unit.h
tests_unit_check_events_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_events_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_publish_SOURCES = tests/unit/check_publish.c tests/unit/unit.h
tests_unit_check_publish_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_publish_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_loads_SOURCES = tests/unit/check_loads.c tests/unit/join_rig.h tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/wide_pods.h
tests_unit_check_loads_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_loads_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_collisions_SOURCES = tests/unit/check_collisions.c tests/unit/join_rig.h tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_collisions_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_collisions_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

tests_unit_check_emit_SOURCES = tests/unit/check_emit.c tests/unit/join_rig.h tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_emit_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_emit_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_moves
TESTS += tests/unit/check_moves
tests_unit_check_moves_SOURCES = tests/unit/check_moves.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_moves_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_moves_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_port_names
TESTS += tests/unit/check_port_names
tests_unit_check_port_names_SOURCES = tests/unit/check_port_names.c tests/unit/unit.h
tests_unit_check_port_names_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_port_names_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_wiring
TESTS += tests/unit/check_wiring
tests_unit_check_wiring_SOURCES = tests/unit/check_wiring.c tests/unit/leafspine.h tests/unit/unit.h \
	tests/unit/wiring_rig.h
tests_unit_check_wiring_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_wiring_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_survey_samples
TESTS += tests/unit/check_survey_samples
tests_unit_check_survey_samples_SOURCES = tests/unit/check_survey_samples.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/wiring_rig.h
tests_unit_check_survey_samples_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_survey_samples_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_follower
TESTS += tests/unit/check_follower
tests_unit_check_follower_SOURCES = tests/unit/check_follower.c tests/unit/join_rig.h tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_follower_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_follower_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_members
TESTS += tests/unit/check_members
tests_unit_check_members_SOURCES = tests/unit/check_members.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_members_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_members_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_detours
TESTS += tests/unit/check_detours
tests_unit_check_detours_SOURCES = tests/unit/check_detours.c tests/unit/join_rig.h tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_detours_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_detours_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_matrix
TESTS += tests/unit/check_matrix
tests_unit_check_matrix_SOURCES = tests/unit/check_matrix.c tests/unit/answer_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_matrix_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_matrix_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=strcmp -Wl,--wrap=strncmp \
	-Wl,--wrap=ft_ranks_next_member -Wl,--wrap=ft_ranks_next_edge
tests_unit_check_matrix_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_oracle
TESTS += tests/unit/check_oracle
tests_unit_check_oracle_SOURCES = tests/unit/check_oracle.c tests/unit/join_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_oracle_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_oracle_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_inference
TESTS += tests/unit/check_inference
tests_unit_check_inference_SOURCES = tests/unit/check_inference.c tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_inference_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_inference_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_flow_parts
TESTS += tests/unit/check_flow_parts
tests_unit_check_flow_parts_SOURCES = tests/unit/check_flow_parts.c
tests_unit_check_flow_parts_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_flow_parts_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_flow_path
TESTS += tests/unit/check_flow_path
tests_unit_check_flow_path_SOURCES = tests/unit/check_flow_path.c tests/unit/leafspine.h
tests_unit_check_flow_path_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_flow_path_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_flow_networks
TESTS += tests/unit/check_flow_networks
tests_unit_check_flow_networks_SOURCES = tests/unit/check_flow_networks.c tests/unit/join_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_flow_networks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_flow_networks_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_flow_tunnel
TESTS += tests/unit/check_flow_tunnel
tests_unit_check_flow_tunnel_SOURCES = tests/unit/check_flow_tunnel.c tests/unit/join_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_flow_tunnel_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_flow_tunnel_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_hashes
TESTS += tests/unit/check_hashes
tests_unit_check_hashes_SOURCES = tests/unit/check_hashes.c tests/unit/switch_hashes.h tests/unit/unit.h
tests_unit_check_hashes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_hashes_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_hashes_outer
TESTS += tests/unit/check_hashes_outer
tests_unit_check_hashes_outer_SOURCES = tests/unit/check_hashes_outer.c tests/unit/leafspine.h \
	tests/unit/unit.h
tests_unit_check_hashes_outer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_hashes_outer_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_prober
TESTS += tests/unit/check_prober
tests_unit_check_prober_SOURCES = tests/unit/check_prober.c tests/unit/join_rig.h \
	tests/unit/leafspine.h
tests_unit_check_prober_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_prober_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_probe_list
TESTS += tests/unit/check_probe_list
tests_unit_check_probe_list_SOURCES = tests/unit/check_probe_list.c tests/unit/leafspine.h
tests_unit_check_probe_list_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_probe_list_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_probed
TESTS += tests/unit/check_probed
tests_unit_check_probed_SOURCES = tests/unit/check_probed.c tests/unit/join_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_probed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_probed_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_findings
TESTS += tests/unit/check_findings
tests_unit_check_findings_SOURCES = tests/unit/check_findings.c tests/unit/unit.h
tests_unit_check_findings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_findings_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)
