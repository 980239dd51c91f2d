# SPDX-License-Identifier: Apache-2.0
# Of daemon/window.
check_PROGRAMS += tests/unit/check_window_figures
TESTS += tests/unit/check_window_figures
tests_unit_check_window_figures_SOURCES = tests/unit/check_window_figures.c tests/unit/unit.h
tests_unit_check_window_figures_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_window_figures_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_window_weights
TESTS += tests/unit/check_window_weights
tests_unit_check_window_weights_SOURCES = tests/unit/check_window_weights.c \
	tests/unit/window_rig.h tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_window_weights_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_window_weights_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_window_idle
TESTS += tests/unit/check_window_idle
tests_unit_check_window_idle_SOURCES = tests/unit/check_window_idle.c \
	tests/unit/window_rig.h tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_window_idle_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_window_idle_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_stopped
TESTS += tests/unit/check_stopped
tests_unit_check_stopped_SOURCES = tests/unit/check_stopped.c \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_stopped_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_stopped_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_window_moves
TESTS += tests/unit/check_window_moves
tests_unit_check_window_moves_SOURCES = tests/unit/check_window_moves.c \
	tests/unit/leafspine.h tests/unit/unit.h tests/unit/window_rig.h
tests_unit_check_window_moves_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_window_moves_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_window_pauses
TESTS += tests/unit/check_window_pauses
tests_unit_check_window_pauses_SOURCES = tests/unit/check_window_pauses.c \
	tests/unit/leafspine.h tests/unit/unit.h tests/unit/window_rig.h
tests_unit_check_window_pauses_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_window_pauses_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_polarized
TESTS += tests/unit/check_polarized
tests_unit_check_polarized_SOURCES = tests/unit/check_polarized.c \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_polarized_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_polarized_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_resends
TESTS += tests/unit/check_resends
tests_unit_check_resends_SOURCES = tests/unit/check_resends.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_resends_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_resends_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)
tests_unit_check_resends_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_join_again \
	-Wl,--wrap=ft_join_topology

check_PROGRAMS += tests/unit/check_lossy_victims
TESTS += tests/unit/check_lossy_victims
tests_unit_check_lossy_victims_SOURCES = tests/unit/check_lossy_victims.c tests/unit/join_rig.h \
	tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_lossy_victims_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_lossy_victims_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_lossy
TESTS += tests/unit/check_lossy
tests_unit_check_lossy_SOURCES = tests/unit/check_lossy.c tests/unit/unit.h
tests_unit_check_lossy_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_lossy_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/check_underused
TESTS += tests/unit/check_underused
tests_unit_check_underused_SOURCES = tests/unit/check_underused.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/window_rig.h
tests_unit_check_underused_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_underused_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)
