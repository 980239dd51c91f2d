# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += daemon/libftdaemon.a
daemon_libftdaemon_a_SOURCES = \
	daemon/collisions.c daemon/collisions.h \
	daemon/emit.c daemon/emit.h \
	daemon/events.c daemon/events.h \
	daemon/figures.c daemon/figures.h \
	daemon/join.c daemon/join.h \
	daemon/loads.c daemon/loads.h \
	daemon/names.c daemon/names.h \
	daemon/pipeline.c daemon/pipeline.h \
	daemon/publish.c daemon/publish.h \
	daemon/replay.c daemon/replay.h \
	daemon/sink_file.c \
	daemon/sink_kafka.c \
	daemon/topology_file.c daemon/topology_file.h \
	daemon/window.c daemon/window.h
