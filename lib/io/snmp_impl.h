// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_SNMP_IMPL_H
#define FT_IO_SNMP_IMPL_H
/* What lib/io/snmp.c and lib/io/snmp_auth.c share: credentials with their keys derived. */
#include <stddef.h>
#include <stdint.h>

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

#endif
