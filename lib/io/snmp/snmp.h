// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_SNMP_SNMP_H
#define FT_IO_SNMP_SNMP_H
/*
 * SNMP manager side (v2c, v3 with the User-based Security Model) in the event loop.
 *
 * Adapter of net-snmp's single-session API; nothing of that library shows here. One session speaks
 * to one agent over a UDP socket of its own and has at most one request in progress. No call
 * blocks: addresses are numbers, and the discovery of an agent's engine id (RFC 3414 section 4) is
 * a request like any other. Retries happen inside; the owner hears once of each request. No MIB
 * file and no configuration of net-snmp is read.
 *
 * Owner: the caller; credentials outlive their sessions, sessions die before the adapter and the
 * adapter before the loop. Thread: the loop's own. net-snmp keeps users and engine times for the
 * process: one adapter a process.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "lib/io/loop.h"

#define FT_SNMP_OID_MAX   128 /* sub-identifiers (RFC 2578 section 3.5) */
#define FT_SNMP_NAMES_MAX 64  /* names in one request */

enum ft_snmp_type {
    FT_SNMP_NULL,
    FT_SNMP_INTEGER,  /* number: two's complement */
    FT_SNMP_UNSIGNED, /* Gauge32, TimeTicks, Unsigned32 */
    FT_SNMP_COUNTER32,
    FT_SNMP_COUNTER64,
    FT_SNMP_STRING,
    FT_SNMP_ADDRESS, /* IpAddress: bytes */
    FT_SNMP_OID,     /* an object identifier, whose value is not handed on */
    FT_SNMP_NONE,    /* noSuchObject, noSuchInstance */
    FT_SNMP_END,     /* endOfMibView */
};

struct ft_snmp_oid {
    uint32_t ids[FT_SNMP_OID_MAX];
    size_t len;
};

/* Everything is borrowed until the callback returns. */
struct ft_snmp_varbind {
    const uint32_t *oid;
    size_t oid_len;
    enum ft_snmp_type type;
    uint64_t number;
    const uint8_t *bytes;
    size_t len;
};

enum ft_snmp_fault {
    FT_SNMP_OK,
    FT_SNMP_TIMEOUT, /* no answer to any of the tries */
    FT_SNMP_REFUSED, /* the agent does not accept user, key or security level */
    FT_SNMP_ENGINE,  /* the agent has another engine id than before: ask again */
    FT_SNMP_TOO_BIG, /* error status tooBig: ask for less */
    FT_SNMP_ERROR,   /* another error status */
    FT_SNMP_SEND,    /* the request could not be made or sent */
};

struct ft_snmp_reply {
    enum ft_snmp_fault fault;
    const char *text; /* what the fault is, for a person; "" when there is none */
    const struct ft_snmp_varbind *varbinds;
    size_t count;
};

/* Credentials as a person writes them. */
struct ft_snmp_secrets {
    int version;           /* 2 (v2c) or 3 */
    const char *community; /* v2c */
    const char *user;      /* v3 from here on */
    const char *auth;      /* "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512"; NULL: none */
    const char *auth_secret;
    const char *priv; /* "AES", "AES-192", "AES-256", "AES-192-C", "AES-256-C"; NULL: none */
    const char *priv_secret;
    const char *context; /* NULL: the default one */
};

/* What is wrong with them, as "auth_secret: ..."; NULL when nothing is. */
const char *ft_snmp_complaint(const struct ft_snmp_secrets *secrets);

struct ft_snmp_stats {
    uint64_t requests; /* = answers + timeouts + refused + errors + pending */
    uint64_t answers;
    uint64_t timeouts;
    uint64_t refused;
    uint64_t errors;
    uint64_t pending;
    uint64_t resent;
    uint64_t discoveries; /* of engine ids; not among the requests */
    uint64_t varbinds;
};

struct ft_snmp;
struct ft_snmp_auth;
struct ft_snmp_session;

/* Whether this build has net-snmp. */
bool ft_snmp_built(void);

/* NULL with a reason: no memory, or a build without net-snmp. */
struct ft_snmp *ft_snmp_new(struct ft_loop *loop, char *error, size_t error_bytes);
void ft_snmp_free(struct ft_snmp *snmp);
void ft_snmp_stats(const struct ft_snmp *snmp, struct ft_snmp_stats *stats);

/* Derives the keys of the secrets (RFC 3414 section A.2; some milliseconds). NULL with a reason: an
 * unknown protocol, a secret of less than 8 characters. */
struct ft_snmp_auth *ft_snmp_auth_new(struct ft_snmp *snmp, const struct ft_snmp_secrets *secrets,
                                      char *error, size_t error_bytes);
void ft_snmp_auth_free(struct ft_snmp_auth *auth);

/* Sends nothing yet. timeout_ns is for each of 1 + retries tries. NULL with a reason. */
struct ft_snmp_session *ft_snmp_session_new(struct ft_snmp *snmp, const struct ft_ip *address,
                                            uint16_t port, const struct ft_snmp_auth *auth,
                                            int64_t timeout_ns, unsigned retries, char *error,
                                            size_t error_bytes);

/* A request in progress is forgotten without a call. May be called from on_reply. */
void ft_snmp_session_free(struct ft_snmp_session *session);

/* GET when repetitions is 0, else GETBULK (RFC 3416 section 4.2.3) with every name repeated.
 * on_reply is called once, never from in here; it may ask again. -EBUSY while a request is in
 * progress, -EINVAL for no or too many names, -ENOMEM. */
int ft_snmp_ask(struct ft_snmp_session *session, const struct ft_snmp_oid *names, size_t count,
                unsigned repetitions, void (*on_reply)(void *arg, const struct ft_snmp_reply *r),
                void *arg);

#endif
