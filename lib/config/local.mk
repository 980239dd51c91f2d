# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/config/libftconfig.a
lib_config_libftconfig_a_SOURCES = \
	lib/config/yaml.c lib/config/yaml.h
