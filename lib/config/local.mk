# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/config/libftconfig.a
lib_config_libftconfig_a_SOURCES = \
	lib/config/asking.c lib/config/asking.h \
	lib/config/budget.c lib/config/budget.h \
	lib/config/options.c lib/config/options.h \
	lib/config/options_impl.h \
	lib/config/program.c lib/config/program.h \
	lib/config/value.c \
	lib/config/yaml.c lib/config/yaml.h
