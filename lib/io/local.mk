# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/io/libftio.a
lib_io_libftio_a_SOURCES = \
	lib/io/closer.c lib/io/closer.h lib/io/connect.c lib/io/endpoint.c lib/io/endpoint.h \
	lib/io/helper.c lib/io/helper.h lib/io/journal.c lib/io/listen_local.c \
	lib/io/listen_local.h lib/io/local_users.c lib/io/local_users.h lib/io/loop.c lib/io/loop.h \
	lib/io/netlink.c lib/io/netlink.h \
	lib/io/notify.c lib/io/ready.c lib/io/ready.h lib/io/verbs.h \
	lib/io/capture/pcap.c lib/io/capture/pcap.h lib/io/capture/pcap_file.c \
	lib/io/capture/pcap_file.h \
	lib/io/disk/incident.c lib/io/disk/incident.h lib/io/disk/pack.c lib/io/disk/pack.h \
	lib/io/disk/spool.c lib/io/disk/spool.h lib/io/disk/spool_segment.c \
	lib/io/disk/spool_segment.h lib/io/disk/unpack.c lib/io/disk/unpack.h \
	lib/io/http/answer.c lib/io/http/channel.c lib/io/http/clients.c \
	lib/io/http/common_metrics.c lib/io/http/common_metrics.h lib/io/http/files.c \
	lib/io/http/get.c lib/io/http/gzip.c lib/io/http/http.c lib/io/http/http.h \
	lib/io/http/http_impl.h lib/io/http/rendering.c lib/io/http/rendering.h \
	lib/io/http/response.c lib/io/http/response.h lib/io/http/routes.c lib/io/http/slices.c \
	lib/io/http/status_page.c lib/io/http/status_page.h lib/io/http/tls_client.c \
	lib/io/http/tls_client.h lib/io/http/web_client.c lib/io/http/web_client.h \
	lib/io/kafka/client.c lib/io/kafka/client.h lib/io/kafka/commit.c lib/io/kafka/consumer.c \
	lib/io/kafka/consumer.h lib/io/kafka/entry.c lib/io/kafka/entry.h lib/io/kafka/errors.c \
	lib/io/kafka/errors.h lib/io/kafka/group.c lib/io/kafka/group.h lib/io/kafka/kept.c \
	lib/io/kafka/producer.c lib/io/kafka/producer.h lib/io/kafka/producer_impl.h \
	lib/io/kafka/properties.c lib/io/kafka/properties.h lib/io/kafka/reader.c \
	lib/io/kafka/reader.h lib/io/kafka/registry.c lib/io/kafka/registry.h \
	lib/io/kafka/registry_answer.c lib/io/kafka/registry_answer.h lib/io/kafka/stats.c \
	lib/io/kafka/stats.h lib/io/kafka/topics.c lib/io/kafka/topics.h \
	lib/io/kafka/transaction.c lib/io/kafka/transaction.h \
	lib/io/snmp/snmp.h lib/io/snmp/snmp_impl.h \
	lib/io/transport/candidates.c lib/io/transport/candidates.h lib/io/transport/daemon_link.c \
	lib/io/transport/daemon_link.h lib/io/transport/dialog.c lib/io/transport/dialog.h \
	lib/io/transport/frame.c lib/io/transport/frame.h \
	lib/io/transport/receiver.c lib/io/transport/receiver_impl.h \
	lib/io/transport/receiver_room.c lib/io/transport/receiver_sources.c \
	lib/io/transport/sender.c lib/io/transport/sender_impl.h lib/io/transport/sender_queue.c \
	lib/io/transport/stream.c lib/io/transport/stream.h lib/io/transport/tls.c \
	lib/io/transport/tls.h lib/io/transport/transport.h

if HAVE_SNMP
lib_io_libftio_a_SOURCES += lib/io/snmp/snmp.c lib/io/snmp/auth.c lib/io/snmp/values.c
else
lib_io_libftio_a_SOURCES += lib/io/snmp/none.c
endif

if HAVE_VERBS
lib_io_libftio_a_SOURCES += lib/io/verbs.c
else
lib_io_libftio_a_SOURCES += lib/io/verbs_none.c
endif

# What a program that uses lib/io links, besides its own libraries in front; --as-needed drops what
# it does not use.
IO_LIBS = lib/io/libftio.a lib/base/libftbase.a $(EVENT_SSL_LIBS) $(EVENT_LIBS) $(PCAP_LIBS) \
	$(MNL_LIBS) $(RDKAFKA_LIBS) $(CURL_LIBS) $(JANSSON_LIBS) $(NETSNMP_LIBS) $(IBVERBS_LIBS) $(SYSTEMD_LIBS) $(ZLIB_LIBS) \
	$(ZSTD_LIBS)
