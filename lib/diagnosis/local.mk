# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/diagnosis/libftdiagnosis.a
lib_diagnosis_libftdiagnosis_a_SOURCES = \
	lib/diagnosis/ahead.c lib/diagnosis/ahead.h lib/diagnosis/alongside.c \
	lib/diagnosis/behind.c lib/diagnosis/behind.h lib/diagnosis/blame.c lib/diagnosis/blame.h \
	lib/diagnosis/changed.c \
	lib/diagnosis/clocks.c lib/diagnosis/clocks.h \
	lib/diagnosis/collectives.c \
	lib/diagnosis/csv.c lib/diagnosis/csv.h \
	lib/diagnosis/diagnosis.c lib/diagnosis/diagnosis.h \
	lib/diagnosis/flight.c lib/diagnosis/flight.h \
	lib/diagnosis/found.c lib/diagnosis/found.h \
	lib/diagnosis/habits.c lib/diagnosis/halted.c lib/diagnosis/halted.h \
	lib/diagnosis/hang.c lib/diagnosis/hang_impl.h lib/diagnosis/hang_said.c \
	lib/diagnosis/late.c lib/diagnosis/leavers.c \
	lib/diagnosis/lost.c lib/diagnosis/lost.h \
	lib/diagnosis/matched.c lib/diagnosis/matched.h \
	lib/diagnosis/mismatch.c \
	lib/diagnosis/offsets.c lib/diagnosis/offsets.h \
	lib/diagnosis/once.c \
	lib/diagnosis/operations.c lib/diagnosis/operations.h \
	lib/diagnosis/order.c lib/diagnosis/order.h \
	lib/diagnosis/outlived.c lib/diagnosis/outlived.h \
	lib/diagnosis/work_pace.c lib/diagnosis/work_pace.h \
	lib/diagnosis/pair_rate.c lib/diagnosis/pair_rate.h \
	lib/diagnosis/pickle.c \
	lib/diagnosis/polish.c lib/diagnosis/polish.h \
	lib/diagnosis/ras.c lib/diagnosis/ras.h \
	lib/diagnosis/report.c lib/diagnosis/report.h \
	lib/diagnosis/rhythm.c lib/diagnosis/rhythm.h \
	lib/diagnosis/roles.c lib/diagnosis/roles.h \
	lib/diagnosis/sends.c \
	lib/diagnosis/series.h lib/diagnosis/slowness.c lib/diagnosis/slowness.h \
	lib/diagnosis/stalls.c lib/diagnosis/stalls.h \
	lib/diagnosis/stats.c lib/diagnosis/stats.h \
	lib/diagnosis/suspects.c lib/diagnosis/suspects.h lib/diagnosis/swapped.c \
	lib/diagnosis/transfers.c \
	lib/diagnosis/tree.c lib/diagnosis/tree.h \
	lib/diagnosis/waits.c lib/diagnosis/waits.h \
	lib/diagnosis/wander.c lib/diagnosis/wander.h
