// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/snmp/snmp.h"

#include <errno.h>
#include <stdio.h>

/* In place of lib/io/snmp/snmp.c in a build without net-snmp: says so when it is asked for. */

bool ft_snmp_built(void)
{
    return false;
}

const char *ft_snmp_complaint(const struct ft_snmp_secrets *secrets)
{
    (void)secrets;
    return NULL;
}

struct ft_snmp *ft_snmp_new(struct ft_loop *loop, char *error, size_t error_bytes)
{
    (void)loop;
    snprintf(error, error_bytes,
             "this build has no support for SNMP (net-snmp; Debian: libsnmp-dev)");
    return NULL;
}

void ft_snmp_free(struct ft_snmp *snmp)
{
    (void)snmp;
}

void ft_snmp_stats(const struct ft_snmp *snmp, struct ft_snmp_stats *stats)
{
    (void)snmp;
    *stats = (struct ft_snmp_stats){0};
}

struct ft_snmp_session *ft_snmp_session_new(struct ft_snmp *snmp, const struct ft_ip *address,
                                            uint16_t port, const struct ft_snmp_auth *auth,
                                            int64_t timeout_ns, unsigned retries, char *error,
                                            size_t error_bytes)
{
    (void)snmp;
    (void)address;
    (void)port;
    (void)auth;
    (void)timeout_ns;
    (void)retries;
    snprintf(error, error_bytes, "this build has no support for SNMP");
    return NULL;
}

void ft_snmp_session_free(struct ft_snmp_session *session)
{
    (void)session;
}

int ft_snmp_ask(struct ft_snmp_session *session, const struct ft_snmp_oid *names, size_t count,
                unsigned repetitions, void (*on_reply)(void *arg, const struct ft_snmp_reply *r),
                void *arg)
{
    (void)session;
    (void)names;
    (void)count;
    (void)repetitions;
    (void)on_reply;
    (void)arg;
    return -EINVAL;
}

struct ft_snmp_auth *ft_snmp_auth_new(struct ft_snmp *snmp, const struct ft_snmp_secrets *secrets,
                                      char *error, size_t error_bytes)
{
    (void)snmp;
    (void)secrets;
    snprintf(error, error_bytes, "this build has no support for SNMP");
    return NULL;
}

void ft_snmp_auth_free(struct ft_snmp_auth *auth)
{
    (void)auth;
}
