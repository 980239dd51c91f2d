// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_TARGETS_H
#define FT_SWITCHPOLL_SNMP_TARGETS_H
/*
 * The file that names the switches to poll and how to talk to them:
 *
 *   credentials:
 *     fabric:                      # a name of your choice
 *       version: 3                 # 3 or 2c
 *       user: fabrictrace
 *       auth: SHA-256              # SHA, SHA-224, SHA-256, SHA-384, SHA-512; left out: none
 *       auth_secret_file: snmp.auth
 *       priv: AES                  # AES, AES-192, AES-256, AES-192-C, AES-256-C; left out: none
 *       priv_secret_file: snmp.priv
 *       context: ""                # SNMP context, hardly ever needed
 *     old:
 *       version: 2c
 *       community_file: snmp.community
 *   switches:
 *     - 192.0.2.11                 # the first credentials
 *     - {address: 192.0.2.12, credentials: old, port: 1161}
 *     - {address: 192.0.2.13, also: [198.51.100.3]}   # further addresses, as of its sFlow agent
 *
 * Addresses are numbers: names are not looked up. A secret stands in a file of its own (without its
 * last newline; a relative path is beside this file, credential:NAME one of the service manager's),
 * or here as auth_secret, priv_secret, community when this file cannot be read by all.
 *
 * Owner: the caller. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/base/diag.h"
#include "lib/base/tuple.h"

/* Texts as lib/io/snmp/snmp.h takes them, owned. */
struct ft_target_credentials {
    char *name;
    int version;
    char *community;
    char *user;
    char *auth;
    char *auth_secret;
    char *priv;
    char *priv_secret;
    char *context;
};

struct ft_target {
    struct ft_ip address;
    uint16_t port;
    size_t credentials; /* index */
    struct ft_ip *also;
    size_t also_count;
};

struct ft_targets {
    struct ft_target_credentials *credentials;
    size_t credential_count;
    struct ft_target *items;
    size_t count;
};

/* Reads the file. NULL after complaints that name file, line and key. */
struct ft_targets *ft_targets_load(const char *file, size_t switches_max, struct ft_diag *diag);

/* Wipes the secrets. Takes NULL. */
void ft_targets_free(struct ft_targets *targets);

#endif
