// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_WORKERS_H
#define FT_SWITCHPOLL_SFLOW_WORKERS_H
/*
 * Threads that receive and fold sFlow, for rates above what one core takes.
 *
 * Each has a socket on the same endpoint and an ingest of its own; nothing is shared while it
 * folds. The kernel hands a datagram to the socket that the agent address inside it names (a
 * classic BPF program on the SO_REUSEPORT group), so an exporter stays with one thread whatever
 * its source address and port: its sequence numbers are followed in one thread and its sums are
 * never spread. Records are encoded in the thread and handed over in batches, which the main
 * loop takes; a thread whose batches are not taken drops them at a cap, and they are counted.
 * Owner: the caller. Thread: the main loop's, for every function here.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"
#include "switchpoll/output/output.h"
#include "switchpoll/settings.h"
#include "switchpoll/sflow/ingest.h"

#define FT_WORKERS_MAX 64

struct ft_workers;

struct ft_workers_stats {
    uint64_t datagrams;    /* taken from the sockets */
    uint64_t kernel_drops; /* also of sockets that a reload closed */
    uint64_t buffer_bytes; /* of one socket */
};

/* Binds the endpoint; nothing is read yet. settings are borrowed for the call, output for its life.
 * NULL with a complaint. */
struct ft_workers *ft_workers_new(struct ft_loop *loop,
                                  const struct ft_switchpoll_settings *settings, uint64_t seed,
                                  struct ft_output *output, char *error, size_t error_bytes);

/* Starts the threads, which get the privileges that the caller has then: capabilities are each
 * thread's own. -errno with a complaint. */
int ft_workers_start(struct ft_workers *workers, char *error, size_t error_bytes);

/* Stops first. */
void ft_workers_free(struct ft_workers *workers);

/* Takes over what a reload may change: the endpoint, the buffer, the interval. All or nothing:
 * -EADDRNOTAVAIL with a complaint. */
int ft_workers_reload(struct ft_workers *workers, const struct ft_switchpoll_settings *settings,
                      char *error, size_t error_bytes);

/* Takes what waits in the sockets, flushes, ends the threads and hands over what they had. */
void ft_workers_stop(struct ft_workers *workers);

/* Folds over so long from here on. */
void ft_workers_set_interval(struct ft_workers *workers, uint32_t interval_ms, uint32_t part);

/* Adds the threads' accounts, each as of its last tick or, after a stop, the last. Fits
 * ft_sflow_pipeline_set_more(). */
void ft_workers_account(void *arg, struct ft_ingest_stats *stats);

void ft_workers_stats(struct ft_workers *workers, struct ft_workers_stats *stats);

/* Of each socket, as the kernel has it. */
uint64_t ft_workers_buffer(struct ft_workers *workers);

/* Holds the threads still while their tables of exporters are read. Returns how many there are;
 * tables has room for FT_WORKERS_MAX. */
size_t ft_workers_hold(struct ft_workers *workers, const struct ft_sflow_exporters **tables);
void ft_workers_release(struct ft_workers *workers);

#endif
