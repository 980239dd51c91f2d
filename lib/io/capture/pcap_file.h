// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_CAPTURE_PCAP_FILE_H
#define FT_IO_CAPTURE_PCAP_FILE_H
/*
 * A capture file of the classic format, read in pieces that stay in the cache: for pcap.c alone.
 *
 * A packet's bytes are borrowed from the piece, where libpcap copies each once more. Only what is
 * common is read (the byte order of this machine, a link type of pcap.h); everything else is
 * libpcap's. Owner: the caller. Thread: one.
 */
#include "lib/io/capture/pcap.h"

struct ft_pcap_file;

/* NULL for whatever libpcap is to read: no such file, no regular one, another format, no memory. */
struct ft_pcap_file *ft_pcap_file_new(const char *name);
void ft_pcap_file_free(struct ft_pcap_file *file);

/* The next packet, good until the next call: 1; at the end of the file 0. -ENODATA where it is cut
 * off, -ESTALE where another program cut it meanwhile, -EMSGSIZE for a length that no capture has,
 * -errno where it cannot be read. */
int ft_pcap_file_next(struct ft_pcap_file *file, struct ft_pcap_packet *packet);

#endif
