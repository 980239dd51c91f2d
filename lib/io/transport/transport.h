// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_TRANSPORT_TRANSPORT_H
#define FT_IO_TRANSPORT_TRANSPORT_H
/*
 * Acknowledged transport between the programs: opaque payloads, each delivered once.
 *
 * A sender (agent, switchpoll) queues payloads, numbers them and sends them over one TCP connection
 * to a receiver (fabrictraced). The receiver acknowledges by number; what was not acknowledged is
 * sent again after a reconnect, and what it has already applied it drops by (source id, boot id,
 * sequence). Frame: length (4 bytes, of what follows), type (1), then by type, big endian:
 *   HELLO   version (1), boot id (8), program length (1), program, source id (the rest)
 *   WELCOME version (1), sequence (8): the last one applied of this source and boot, 0 if none
 *   DATA    sequence (8), payload (the rest); of version 1
 *   RECORDS sequence (8), last (8), count (4), newest (8), payload (the rest)
 *   ACK     sequence (8): this and all below are applied
 *   REFUSE  reason text
 *   NOTICE  payload (the rest): from the receiver, neither numbered nor acknowledged; only to a
 *           sender that is known to take them, for an older one closes the connection at it
 * A sender numbers its records as they are queued: count of them are in the payload, the last one
 * has the number last, and newest is that of the newest by then. So the receiver knows how many
 * never came when the sender begins anew. Version 1 has no such numbers; a receiver takes both.
 * Each of several receivers knows what it applied itself; what a sender delivered to another one
 * meanwhile it counts as skipped.
 * With TLS both ends show certificates. Thread: the loop's own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"

#define FT_TRANSPORT_VERSION    2
#define FT_TRANSPORT_OLDEST     1 /* that a receiver takes */
#define FT_TRANSPORT_FRAME_MAX  (4u << 20)
#define FT_TRANSPORT_NOTICE_MAX 255
#define FT_SOURCE_ID_BYTES_MAX  128 /* printable ASCII without blanks */
#define FT_PROGRAM_BYTES_MAX    64  /* likewise */

/* Paths of PEM files; all NULL: plain TCP. */
struct ft_tls_files {
    const char *cert;
    const char *key;
    const char *ca;
    const char *crl; /* of revoked certificates; NULL: none are */
};

/* The names in a peer's certificate (RFC 5280 section 4.2.1.6), each as "URI:...", "DNS:..." or
 * "IP:...": printable ASCII without blanks, others are left out. None without TLS. */
struct ft_peer_names {
    char **items;
    size_t count;
};

struct ft_sender;
struct ft_tls;

/* Another way to the daemon than a connection of its own. free() is called with the sender's, or
 * when none could be made. flush() may take timeout_ns. */
struct ft_sender_stats;
struct ft_sender_transport {
    int (*send)(void *self, const void *payload, size_t len, uint32_t records);
    void (*stats)(const void *self, struct ft_sender_stats *stats);
    void (*flush)(void *self, int64_t timeout_ns);
    void (*free)(void *self);
    void *self;
};

struct ft_sender_config {
    const char *endpoint; /* "host:port" */
    /* Instead of all that follows and the endpoint; NULL: TCP. Copied. */
    const struct ft_sender_transport *transport;
    /* Other receivers, in the order of preference, NULL-terminated; NULL: none. The sender goes to
     * the next where one refuses or is silent, and back to one before when that can be reached
     * again: it then sends nothing more until all that is in flight is acknowledged. */
    const char *const *others;
    int64_t return_ns; /* between two attempts to go back; 0: 30 s */
    const char *source_id;
    const char *program;
    uint64_t boot_id; /* differs at every start of the program */
    size_t queue_bytes_max;
    int64_t retry_min_ns, retry_max_ns; /* doubling back-off with jitter between these */
    int64_t timeout_ns;                 /* for each answer of the receiver; 0: 15 s */
    struct ft_tls_files tls;
    /* Connected (true), or a connection ended or could not be made, with a text that names the
     * endpoint: once for each, so the log limits it. Must not free the sender. May be NULL. */
    void (*on_state)(void *arg, bool up, const char *text);
    void *arg;
    /* A NOTICE of the receiver, borrowed for the call. Must not free the sender. May be NULL. */
    void (*on_notice)(void *arg, const uint8_t *payload, size_t len);
    void *notice_arg;
};

/* sent = acked + dropped + queued, in payloads and in the records the caller says they hold. */
struct ft_sender_stats {
    uint64_t payloads, payloads_acked, payloads_dropped, payloads_queued;
    uint64_t records, records_acked, records_dropped, records_queued;
    uint64_t records_found; /* of them: an earlier start of the program had left them in a spool */
    uint64_t queue_bytes;
    uint64_t connects;
    /* Records sent to one receiver, not acknowledged by it and sent to another one: both may have
     * them. */
    uint64_t records_repeated;
    bool connected;
};

/* NULL with a complaint in error: the endpoint, a name or the TLS files are no good, or no memory.
 * Connects in the background, for good. */
struct ft_sender *ft_sender_new(struct ft_loop *loop, const struct ft_sender_config *config,
                                char *error, size_t error_bytes);
void ft_sender_free(struct ft_sender *sender);

/* Queues a copy of the payload. When the queue is full the oldest payloads that are not in flight
 * are dropped and counted. This payload itself is, with -EMSGSIZE when it is over the frame limit,
 * -ENOBUFS when it is over what the queue can make room for, -ENOMEM. In flight are payloads that
 * may have arrived: at most half of the queue, and known for sure at the next WELCOME. */
int ft_sender_send(struct ft_sender *sender, const void *payload, size_t len, uint32_t records);
void ft_sender_stats(const struct ft_sender *sender, struct ft_sender_stats *stats);

/* How long the oldest payload that is not acknowledged has waited for that since it was queued, or
 * since the receiver said WELCOME. 0: there is none, or no connection; or another way is used. */
int64_t ft_sender_waits_ns(const struct ft_sender *sender);

/* Loads the files, which changes nothing yet: -EINVAL with a complaint where they are no good, or
 * the sender was made without TLS. Else *loaded is the caller's until it is taken, for connections
 * from there on; the one that stands continues as it is. */
int ft_sender_load_tls(const struct ft_sender *sender, const struct ft_tls_files *files,
                       struct ft_tls **loaded, char *error, size_t error_bytes);
void ft_sender_take_tls(struct ft_sender *sender, struct ft_tls *loaded);

/* Calls done, from the loop, once everything queued is acknowledged or timeout_ns has passed. done
 * may free the sender. A second call replaces the first. */
void ft_sender_flush(struct ft_sender *sender, int64_t timeout_ns, void (*done)(void *arg),
                     void *arg);

struct ft_receiver;

struct ft_receiver_config {
    const char *listen; /* "host:port", ":port" on all addresses */
    /* At this many the oldest that has not identified itself makes room; when all have, a new one
     * is refused. */
    uint32_t connections_max;
    /* Remembered programs, each by its id. Of those not connected the one silent longest is
     * forgotten first; when all are, a new one is refused. */
    uint32_t sources_max;
    int64_t timeout_ns; /* for a HELLO, and for a frame that has begun to end; 0: 15 s */
    /* Of frames that are not complete yet or wait, all together; two frames at least, 0: 64 MiB. */
    size_t input_bytes_max;
    struct ft_tls_files tls;
    /* Judges who has said HELLO: what apply() is to know the peer by, or NULL with a reason that
     * the peer is informed; release() gives it back when the peer is gone. Both may be NULL: then
     * all may come, and apply() gets NULL. */
    void *(*admit)(void *arg, const char *source_id, const char *program,
                   const struct ft_peer_names *names, char *reason, size_t reason_bytes);
    void (*release)(void *arg, void *known);
    /* Applies a payload. Above 0: there is more to do; it is called with the same payload again
     * after the loop has looked at its descriptors, and with no other before. Not called for
     * duplicates, which are known as long as this receiver lives and remembers the source.
     * Returning an error closes that connection unacknowledged with this payload counted refused
     * and never asked for again. */
    int (*apply)(void *arg, void *known, const char *source_id, const char *program,
                 const uint8_t *payload, size_t len);
    /* Before the first payload of a connection is applied: payloads before it are not here. They
     * went to another receiver, were dropped, or came before this receiver lived. May be NULL. */
    void (*gap)(void *arg, const char *source_id, const char *program);
    /* Peer came (true, reason "") or went; reason says why. source_id is "" when it went without
     * having said who it is. Neither call may free the receiver. May be NULL. */
    void (*peer)(void *arg, const char *source_id, const char *address, bool up,
                 const char *reason);
    void *arg;
};

/* payloads = applied + duplicates + refused + lost; lost is what came in part and never again,
 * since its sender began anew, and what the sender had in memory is gone. */
struct ft_receiver_stats {
    uint64_t payloads, applied, duplicates, refused, lost;
    uint64_t connections, connections_refused, malformed; /* malformed closed a connection */
    uint64_t crowded_out; /* cut off within a frame, as there was no room for all */
    uint32_t connected;
    /* What senders said of their records: numbered = applied + refused + skipped + lost + pending.
     * Skipped were dropped by a sender that went on, and are in its own account; lost are those of
     * a sender that began anew, or was not heard for so long that it is forgotten. */
    uint64_t records_numbered, records_applied, records_refused, records_skipped, records_lost;
    uint64_t records_pending;
};

struct ft_receiver *ft_receiver_new(struct ft_loop *loop, const struct ft_receiver_config *config,
                                    char *error, size_t error_bytes);
void ft_receiver_free(struct ft_receiver *receiver);

/* Ends a payload that is begun, before the program stops: half of one would come twice. */
void ft_receiver_finish(struct ft_receiver *receiver);
void ft_receiver_stats(const struct ft_receiver *receiver, struct ft_receiver_stats *stats);

/* Whether what has come waits to be taken in. */
bool ft_receiver_waits(const struct ft_receiver *receiver);

/* Sends a NOTICE of at most FT_TRANSPORT_NOTICE_MAX bytes. -ENOTCONN, or -EAGAIN where the sender
 * has not read what it was sent before: it may come or not, so whoever needs it repeats it. */
int ft_receiver_notify(struct ft_receiver *receiver, const char *program, const char *source_id,
                       const void *payload, size_t len);

/* As those of a sender. With a list of revoked certificates connections that stand are judged by it
 * as well, and closed with the reason where they would no longer be accepted. */
int ft_receiver_load_tls(const struct ft_receiver *receiver, const struct ft_tls_files *files,
                         struct ft_tls **loaded, char *error, size_t error_bytes);
void ft_receiver_take_tls(struct ft_receiver *receiver, struct ft_tls *loaded);

/* The port that was bound, for a config with port 0. */
uint16_t ft_receiver_port(const struct ft_receiver *receiver);

#endif
