# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/files/libftfiles.a
lib_files_libftfiles_a_SOURCES = \
	lib/files/flows_file.c lib/files/flows_file.h \
	lib/files/slurp.c lib/files/slurp.h \
	lib/files/topology_file.c lib/files/topology_file.h
