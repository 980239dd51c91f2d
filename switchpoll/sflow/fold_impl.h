// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SFLOW_FOLD_IMPL_H
#define FT_SWITCHPOLL_SFLOW_FOLD_IMPL_H
/* Of fold.c: a sum, and the record that is made of it. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/tuple.h"
#include "proto/packet.h"
#include "switchpoll/output/sink.h"

/* Hashed and compared as bytes: no padding. Whole words, since what was stored in parts is slow to
 * read in words soon after. A port of 0 is one the exporter does not name; the data source is 0
 * where the point says it: it is the port in or out. Where the tunnel names a network (VNI), that
 * stands in what is zero of a tuple. */
struct ft_fold_key {
    struct ft_ip agent;
    struct ft_tuple tuple;
    uint64_t ports;  /* in, out: 32 bits each, the first above */
    uint64_t source; /* sub-agent, index of the data source: likewise */
    uint64_t fate;   /* discard reason; FT_FOLD_HAS_VNI and type of the data source, point, fate: 32
                        bits, 4 times 8 */
};
_Static_assert(sizeof(struct ft_fold_key) == 80, "a hole in the key would hash stack bytes");

#define FT_FOLD_HAS_VNI (UINT64_C(1) << 24)

static inline void ft_fold_set_vni(struct ft_fold_key *key, uint32_t vni)
{
    const uint8_t bytes[3] = {(uint8_t)(vni >> 16), (uint8_t)(vni >> 8), (uint8_t)vni};

    memcpy(key->tuple.zero, bytes, sizeof(bytes));
    key->fate |= FT_FOLD_HAS_VNI;
}

static inline bool ft_fold_vni(const struct ft_fold_key *key, uint32_t *vni)
{
    const uint8_t *bytes = key->tuple.zero;

    *vni = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
    return key->fate & FT_FOLD_HAS_VNI;
}

#define QP_MASK   0xffffffu
#define QP_KNOWN  (1u << 24)
#define QP_DIFFER (1u << 25)

#define PSN_MASK 0xffffffu

/* What every sample touches comes first. With the table's 8 bytes before it a sum fills complete
 * cache lines. */
struct ft_fold_sum {
    struct ft_fold_key key;
    uint64_t packets;
    uint64_t bytes;
    struct ft_wall first;
    uint32_t span_ms : 24; /* from the first to the last one */
    uint32_t ttl : 8;      /* of the last one; 0: not known */
    uint32_t samples;
    uint32_t ce_samples;
    uint32_t data_samples;
    uint32_t ack_samples;
    uint32_t dst_qp; /* and its bits above */

    uint32_t psn : 24;             /* the lowest of the data samples, */
    uint32_t psn_kinds : 8;        /* and their kinds; bits of enum ft_psn_kind */
    uint32_t psn_span;             /* from it to the highest one; UINT32_MAX: more than that */
    uint32_t psn_back;             /* samples whose number was lower than that of one before */
    uint32_t starts;               /* of data_samples: first packets of messages */
    uint16_t frame_min, frame_max; /* of data_samples */
    uint16_t naks, rnrs;           /* of ack_samples; UINT16_MAX: as many or more */
    uint32_t cnp_samples;          /* of ack_samples */
    uint32_t before;               /* highest number of the sum before; BEFORE_KNOWN */

    uint8_t has; /* of queue_bytes and transit_ns; bits of enum ft_sflow_has */
    bool has_outer, outers_differ, source_routed;
    uint32_t queue_bytes;
    uint32_t transit_ns;
    uint16_t no_credits; /* of ack_samples, likewise */
    uint64_t hash;       /* of the key; with data_samples */
};
_Static_assert((sizeof(struct ft_fold_sum) + 8) % 64 == 0, "complete lines");

/* Whether its numbers are of one space alone, of which those between the lowest and the highest
 * were all sent. */
static inline bool ft_fold_numbered(const struct ft_fold_sum *sum)
{
    return sum->data_samples && (sum->dst_qp & (QP_KNOWN | QP_DIFFER)) == QP_KNOWN &&
           sum->psn_span != UINT32_MAX &&
           (sum->psn_kinds == FT_PSN_REQUEST || sum->psn_kinds == FT_PSN_RESPONSE);
}

/* outer: its tunnel; NULL without one, or where samples disagree. */
void ft_fold_emit(const struct ft_fold_sum *sum, const struct ft_tuple *outer, struct ft_wall start,
                  uint32_t interval_ms, const struct ft_record_sink *sink);

#endif
