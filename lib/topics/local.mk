# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/topics/libfttopics.a
lib_topics_libfttopics_a_SOURCES = \
	lib/topics/checks.c lib/topics/checks.h \
	lib/topics/divide.c lib/topics/divide.h \
	lib/topics/envelope.c lib/topics/envelope.h \
	lib/topics/sender.c lib/topics/sender.h \
	lib/topics/settings.c lib/topics/settings.h

TOPICS_LIBS = lib/topics/libfttopics.a proto/libftproto.a lib/config/libftconfig.a $(IO_LIBS) \
	$(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) $(XXHASH_LIBS)
