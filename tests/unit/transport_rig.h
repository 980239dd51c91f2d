// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_TRANSPORT_RIG_H
#define FT_TESTS_TRANSPORT_RIG_H
/*
 * A loop with a receiver and senders on loopback, for the tests of the transport. While it runs,
 * the identities of the counters are checked every millisecond.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/transport/frame.h"
#include "lib/io/transport/transport.h"
#include "tests/unit/unit.h"

#define RIG_MS      INT64_C(1000000)
#define RIG_SENDERS 4
#define RIG_SEEN    20000

struct rig {
    struct ft_loop *loop;
    struct ft_receiver *receiver;
    struct ft_receiver_config receiver_config;
    struct ft_sender *senders[RIG_SENDERS];
    uint16_t port;
    char endpoint[64];
    /* What was applied: each payload's first four bytes. */
    uint32_t seen[RIG_SEEN];
    unsigned seen_count;
    bool refuse_next;
    bool hold; /* a payload that is begun goes on */
    unsigned begun;
    int ups, downs;
    unsigned gaps;
    char down_reason[256], sender_text[512], down_source[160];
    unsigned sender_ups;
};

extern struct rig rig;

/* A loop and a receiver on a free port of 127.0.0.1. The test may have set receiver_config. */
void rig_start(void);
void rig_stop(void);

/* Frees the receiver, or makes it anew on the same port. */
void rig_receiver_down(void);
void rig_receiver_up(void);

/* A sender named "hostN" with quick retries. queue_bytes 0: 64 MiB. */
struct ft_sender_config rig_sender_config(int number);
struct ft_sender *rig_sender(int number, const struct ft_sender_config *config);

/* Sends a payload of len bytes (at least 4) that begins with value. */
int rig_send(int number, uint32_t value, size_t len);

/* Runs the loop until done() is true; fails the test after 30 seconds. */
void rig_run(bool (*done)(void), const char *what);
void rig_run_for(int64_t ns);

/* Raw blocking clients. */
int rig_raw_connect(void);
int rig_raw_listen(uint16_t *port);

/* Runs the loop until there is a connection to take. */
int rig_raw_accept(int listener);
void rig_raw_write(int fd, const void *bytes, size_t len);
void rig_raw_hello(int fd, const char *source_id, uint64_t boot_id);
void rig_raw_data(int fd, uint64_t sequence, uint32_t value);

/* Runs the loop until a whole frame can be read; false when the stream ended instead. */
bool rig_raw_read(int fd, struct ft_frame *frame);

/* Open descriptors; *inherited receives how many of them a child would get. */
int rig_open_fds(int *inherited);

#endif
