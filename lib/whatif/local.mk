# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/whatif/libftwhatif.a
lib_whatif_libftwhatif_a_SOURCES = \
	lib/whatif/captured.c lib/whatif/captured.h \
	lib/whatif/draw.c lib/whatif/draw.h \
	lib/whatif/error.c lib/whatif/error.h \
	lib/whatif/inputs.h \
	lib/whatif/learnt.c lib/whatif/learnt.h \
	lib/whatif/measure.c lib/whatif/measure.h \
	lib/whatif/record.c lib/whatif/record.h \
	lib/whatif/siblings.c lib/whatif/siblings.h \
	lib/whatif/times.c lib/whatif/times.h
