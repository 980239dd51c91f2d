// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_TRANSPORT_SHARED_H
#define FT_TESTS_TRANSPORT_SHARED_H
/*
 * States that tests of the transport wait for.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/io/transport/transport.h"
#include "tests/unit/transport_rig.h"

static unsigned wanted;

static inline struct ft_sender_stats sender_stats(int number)
{
    struct ft_sender_stats s;

    ft_sender_stats(rig.senders[number], &s);
    return s;
}

static inline struct ft_receiver_stats receiver_stats(void)
{
    struct ft_receiver_stats r;

    ft_receiver_stats(rig.receiver, &r);
    return r;
}

static inline bool seen_wanted(void)
{
    return rig.seen_count >= wanted;
}

static inline bool all_acked(void)
{
    return sender_stats(0).payloads_queued == 0;
}

static inline bool connected(void)
{
    return sender_stats(0).connected;
}

static inline bool nobody_connected(void)
{
    return receiver_stats().connected == 0;
}

static inline bool sender_told(void)
{
    return rig.sender_text[0];
}

static inline bool one_down(void)
{
    return rig.downs > 0;
}

static inline void start_with_sender(void)
{
    struct ft_sender_config config;

    rig_start();
    config = rig_sender_config(0);
    rig_sender(0, &config);
}

static inline void expect_in_order(uint32_t from, uint32_t count)
{
    ck_assert_uint_eq(rig.seen_count, count);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(rig.seen[i], from + i);
}

#endif
