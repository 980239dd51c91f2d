// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_PCAP_MAP_H
#define FT_IO_PCAP_MAP_H
/*
 * A capture file of the classic format, read where the page cache holds it: for pcap.c alone.
 *
 * Copying a capture out of the kernel costs as much as decoding it. Here a part of the file after
 * the other is mapped, and a packet's bytes are borrowed from there. Only what is common is read
 * (the byte order of this machine, a link type of pcap.h); everything else is libpcap's. A file
 * that another program cuts short in the moment it is read ends the program with a message and
 * EX_IOERR (SIGBUS is caught for that, see mmap(2)); a disk's fault and a file that is shorter at
 * the next part are errors like any other. One map a process. Owner: the caller. Thread: one.
 */
#include "lib/io/pcap.h"

struct ft_pcap_map;

/* NULL for whatever libpcap is to read: no such file, no regular one, another format, no memory. */
struct ft_pcap_map *ft_pcap_map_new(const char *file);
void ft_pcap_map_free(struct ft_pcap_map *map);

/* The next packet, good until the next call: 1; at the end of the file 0. -ENODATA where it is cut
 * off, -EMSGSIZE for a length that no capture has, -errno where
 * it cannot be read. */
int ft_pcap_map_next(struct ft_pcap_map *map, struct ft_pcap_packet *packet);

#endif
