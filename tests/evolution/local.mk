# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += tests/evolution/check_evolution.py tests/evolution/earlier.proto \
	tests/evolution/check_interfaces.py tests/evolution/interfaces
TESTS += tests/evolution/check_evolution.py tests/evolution/check_interfaces.py
check_PROGRAMS += tests/evolution/codec
tests_evolution_codec_SOURCES = tests/evolution/codec.c
tests_evolution_codec_LDADD = proto/libftproto.a lib/base/libftbase.a $(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(ZSTD_LIBS) -lm
