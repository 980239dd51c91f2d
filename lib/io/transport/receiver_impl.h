// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_TRANSPORT_RECEIVER_IMPL_H
#define FT_IO_TRANSPORT_RECEIVER_IMPL_H
/*
 * Shared by the parts of the receiver alone: connections and their frames (receiver.c), and the
 * memory that frames take until they are complete (receiver_room.c).
 */
#include <stdbool.h>
#include <sys/queue.h>

#include "lib/io/endpoint.h"
#include "lib/io/loop.h"
#include "lib/io/transport/frame.h"
#include "lib/io/transport/tls.h"
#include "lib/io/transport/transport.h"

struct bufferevent;
struct evconnlistener;
struct evbuffer_cb_entry;
struct ft_connection;
struct ft_receiver_source;

TAILQ_HEAD(ft_connections, ft_connection);
TAILQ_HEAD(ft_receiver_sources, ft_receiver_source);

/* Padded with zeroes. Programs of one host go by its name, each of them. */
struct ft_receiver_source_key {
    char program[FT_PROGRAM_BYTES_MAX];
    char id[FT_SOURCE_ID_BYTES_MAX];
};

/* What is remembered of a sender beyond its connection. */
struct ft_receiver_source {
    struct ft_receiver_source_key key;
    uint64_t boot_id;
    uint64_t applied;       /* the number of the last payload */
    uint64_t begun;         /* of one of which only a part came; 0: none */
    bool numbered;          /* it has said what follows, which is 0 before */
    uint64_t record_last;   /* number of the last record that came, or was skipped */
    uint64_t record_newest; /* of the newest that it has */
    struct ft_connection *connection;
    TAILQ_ENTRY(ft_receiver_source) left; /* while it has no connection */
};

struct ft_connection {
    TAILQ_ENTRY(ft_connection) next;
    TAILQ_ENTRY(ft_connection) unnamed; /* until it is welcome */
    TAILQ_ENTRY(ft_connection) turn;    /* while waiting */
    TAILQ_ENTRY(ft_connection) holding; /* while bytes wait in its input */
    struct ft_receiver *receiver;
    struct bufferevent *bev;
    struct evbuffer_cb_entry *counted;
    size_t held;
    struct ft_watch *deadline;
    int64_t busy_ns;                   /* of the loop, when the deadline was set */
    struct ft_receiver_source *source; /* NULL before its HELLO */
    void *known;                       /* by admit(); NULL before */
    size_t frame_max;
    uint64_t acked;
    bool heard;   /* a payload of it was begun, and not one that comes twice */
    bool named;   /* it was welcome */
    bool waiting; /* to be served: complete frames are left */
    bool closing; /* a REFUSE is on its way out */
    bool gone;    /* the stream ended while frames of it were left */
    char address[FT_ENDPOINT_BYTES];
    char id[FT_SOURCE_ID_BYTES_MAX + 1];
    char program[FT_PROGRAM_BYTES_MAX + 1];
};

struct ft_receiver {
    struct ft_loop *loop;
    struct ft_receiver_config config;
    struct ft_tls *tls;
    struct evconnlistener *listener;
    struct ft_watch *rest;
    uint16_t port;
    struct ft_connections connections;
    struct ft_connections strangers; /* of them who was not welcome yet, the oldest first */
    struct ft_table *sources;
    struct ft_receiver_sources
        left; /* without a connection, the one that left first is the first */
    struct ft_connections returns;
    struct ft_connection *applying; /* in the middle of a payload: nobody else's is begun */
    struct ft_watch *next_turn;
    struct ft_mono turn_began;
    struct ft_connections holders; /* who got on least recently is the first */
    size_t held;                   /* bytes in all inputs */
    bool crowded;                  /* nothing is read until there is room again */
    struct ft_watch *relief;
    void (*crowd_out)(struct ft_connection *c);
    struct ft_receiver_stats stats;
};

/* Begins and ends the count of the bytes in a connection's input. -ENOMEM. */
int ft_receiver_count_input(struct ft_connection *c);
void ft_receiver_forget_input(struct ft_connection *c);

/* Reads on from a connection, unless there is no room now: then it begins when there is. */
void ft_receiver_read(struct ft_connection *c);

/* crowd_out ends a connection, to make room. */
int ft_receiver_open_room(struct ft_receiver *receiver, void (*crowd_out)(struct ft_connection *c));
void ft_receiver_close_room(struct ft_receiver *receiver);

/* Says to whom there is no room for that, and closes the socket. */
void ft_receiver_reject(struct ft_receiver *receiver, int fd);

/* receiver_sources.c: the source that a HELLO names, made when it is new (*fresh); NULL without
 * memory. Another boot id begins its numbers anew. */
struct ft_receiver_source *ft_receiver_find_source(struct ft_receiver *receiver,
                                                   const struct ft_frame *hello, bool *fresh);
/* Its connection ends. */
void ft_receiver_leave_source(struct ft_connection *c);
/* The numbers that a frame states, and what became of its records: *outcome counts them. */
void ft_receiver_note_numbers(struct ft_receiver *receiver, struct ft_receiver_source *source,
                              const struct ft_frame_numbers *n);
void ft_receiver_count_numbers(struct ft_receiver *receiver, struct ft_receiver_source *source,
                               const struct ft_frame_numbers *n, uint64_t *outcome);

#endif
