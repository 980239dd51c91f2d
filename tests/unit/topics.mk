# SPDX-License-Identifier: Apache-2.0
topics_tests = tests/unit/check_divide tests/unit/check_topics
check_PROGRAMS += $(topics_tests)
TESTS += $(topics_tests)

tests_unit_check_divide_SOURCES = tests/unit/check_divide.c tests/unit/unit.h
tests_unit_check_divide_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_divide_LDADD = $(TOPICS_LIBS) $(CHECK_LIBS)

tests_unit_check_topics_SOURCES = tests/unit/check_topics.c tests/unit/unit.h
tests_unit_check_topics_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_topics_LDADD = $(TOPICS_LIBS) $(CHECK_LIBS)
