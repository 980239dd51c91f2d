// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_IDENTITY_H
#define FT_SWITCHPOLL_SNMP_IDENTITY_H
/*
 * How LLDP names a port or a chassis: a kind and a text (IEEE 802.1AB-2016 tables 8-2 and 8-3),
 * from the subtype and the octets that an agent answers. Bytes of a peer become text here: text
 * that is not valid UTF-8 is written in hexadecimal. Pure. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "proto/fabrictrace.pb-c.h"

/* The subtypes' numbers as they are on the wire. */
enum ft_identity_what { FT_IDENTITY_CHASSIS, FT_IDENTITY_PORT };

struct ft_switch_identity {
    uint32_t subtype;
    uint8_t *bytes; /* NULL: not answered */
    size_t len;
    Fabrictrace__IdKind kind; /* both by ft_identity_decide() */
    char *text;
};

/* Keeps a copy of the octets, up to 255 of them. */
void ft_identity_set(struct ft_switch_identity *id, const uint8_t *bytes, size_t len);

/* Works kind and text out, once subtype and octets are there. */
void ft_identity_decide(struct ft_switch_identity *id, enum ft_identity_what what);

/* Frees what it holds and empties it. */
void ft_identity_clear(struct ft_switch_identity *id);

/* New text from octets of a DisplayString or SnmpAdminString; NULL for an empty one and without
 * memory. Trailing zero bytes and blanks are left out. */
char *ft_identity_text(const uint8_t *bytes, size_t len);

/* New text "aa:bb:cc:dd:ee:ff" from 6 octets, or from the same as text; NULL for anything else. */
char *ft_identity_mac(const uint8_t *bytes, size_t len);

#endif
