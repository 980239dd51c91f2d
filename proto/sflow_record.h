// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_SFLOW_RECORD_H
#define FT_PROTO_SFLOW_RECORD_H
/*
 * The records inside sFlow samples that only add to them: which kind a format number is, and what
 * the extended ones say (sflow.org/developers/structures.php lists the numbers). For sflow.c alone.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/reader.h"
#include "proto/sflow.h"

/* Of a flow_data or counter_data format: enterprise in the upper 20 bits, number in the lower 12.
 */
enum ft_sflow_record ft_sflow_flow_record(uint32_t format);
enum ft_sflow_record ft_sflow_counter_record(uint32_t format);

/* Reads an extended record into the fields that it fills. False when it is shorter than its kind:
 * nothing is filled. */
bool ft_sflow_read_extended(uint32_t format, struct ft_reader *r, struct ft_sflow_extended *e);

/* Extended switch data, which most exporters add to every sample. The same, for that format. */
#define FT_SFLOW_EXTENDED_SWITCH 1001

static inline bool ft_sflow_read_switch(struct ft_reader *r, struct ft_sflow_extended *e)
{
    const uint8_t *h = ft_read_bytes(r, 16);

    if (!h)
        return false;
    e->in_vlan = ft_be32_at(h);
    e->out_vlan = ft_be32_at(h + 8);
    e->has |= FT_SFLOW_HAS_VLANS;
    return true;
}

/* Reads a record of counters that is not the generic one into what it fills. False when it is
 * shorter than its kind: nothing is filled. */
bool ft_sflow_read_counters(enum ft_sflow_record kind, struct ft_reader *r,
                            struct ft_sflow_counters *c, struct ft_sflow_processor *p);

/* Counters of 32 and 64 bits; all ones: FT_SFLOW_NO_COUNT. */
uint64_t ft_sflow_read_count32(struct ft_reader *r);

#endif
