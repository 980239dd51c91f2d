# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/base/libftbase.a
lib_base_libftbase_a_SOURCES = \
	lib/base/account.c lib/base/account.h \
	lib/base/bound.h \
	lib/base/clock.c lib/base/clock.h \
	lib/base/diag.c lib/base/diag.h \
	lib/base/digest.c lib/base/digest.h \
	lib/base/grow.c lib/base/grow.h \
	lib/base/launcher.c lib/base/launcher.h \
	lib/base/lines.c lib/base/lines.h \
	lib/base/log.c lib/base/log.h \
	lib/base/mix.h \
	lib/base/near.c lib/base/near.h \
	lib/base/partition.c lib/base/partition.h \
	lib/base/prefix.c lib/base/prefix.h \
	lib/base/privilege.c lib/base/privilege.h \
	lib/base/process.c lib/base/process.h \
	lib/base/prometheus.c lib/base/prometheus.h \
	lib/base/reader.h \
	lib/base/secret.c lib/base/secret.h \
	lib/base/sum.c lib/base/sum.h \
	lib/base/table.c lib/base/table.h \
	lib/base/task.c lib/base/task.h \
	lib/base/tuple.c lib/base/tuple.h \
	lib/base/utf8.h \
	lib/base/writer.c lib/base/writer.h
