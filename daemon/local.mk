# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += daemon/libftdaemon.a
daemon_libftdaemon_a_SOURCES = \
	daemon/topology_file.c daemon/topology_file.h
