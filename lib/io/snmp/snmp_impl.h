// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_SNMP_SNMP_IMPL_H
#define FT_IO_SNMP_SNMP_IMPL_H
/*
 * What the adapter's parts share: credentials with their keys derived (auth.c), the values of
 * an answer (values.c), sessions and requests (snmp.c).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/snmp/snmp.h"

#define FT_SNMP_KEY_MAX 64 /* a SHA-512 key before it is localized */

struct ft_snmp_auth {
    int version;
    char *community;
    char *user;
    char *context;
    int auth_type; /* net-snmp's numbers; 0: none */
    int priv_type;
    uint8_t auth_key[FT_SNMP_KEY_MAX];
    size_t auth_key_bytes;
    uint8_t priv_key[FT_SNMP_KEY_MAX];
    size_t priv_key_bytes;
};

/* The varbinds of the reply that is handed over, as net-snmp's own are of another width. */
struct ft_snmp_room {
    struct ft_snmp_varbind *varbinds;
    uint32_t *ids;
    size_t varbinds_max;
    size_t ids_max;
};

struct snmp_pdu;

/* Converts the variables of a PDU. The reply's point into the room. False without memory. */
bool ft_snmp_values(struct ft_snmp_room *room, const struct snmp_pdu *pdu,
                    struct ft_snmp_reply *reply);

#endif
