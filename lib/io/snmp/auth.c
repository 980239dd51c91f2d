// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/snmp/snmp.h"
#include "lib/io/snmp/snmp_impl.h"

#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

/* What an operator may write; MD5 and DES are not among it. */
static const char *const auth_names[] = {"SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512", NULL};
static const char *const priv_names[] = {"AES",       "AES-192",   "AES-256",
                                         "AES-192-C", "AES-256-C", NULL};

static bool listed(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* The key of a secret before it is localized to an engine (RFC 3414 section A.2.2). The privacy
 * key is made with the authentication's hash as well. */
static bool derive(int auth_type, const char *secret, uint8_t key[FT_SNMP_KEY_MAX], size_t *bytes)
{
    size_t oid_len;
    const oid *hash = sc_get_auth_oid(auth_type, &oid_len);

    *bytes = FT_SNMP_KEY_MAX;
    return hash && generate_Ku(hash, (u_int)oid_len, (const u_char *)secret, strlen(secret), key,
                               bytes) == SNMPERR_SUCCESS;
}

/* Of version 3. */
static const char *complaint(const struct ft_snmp_secrets *s)
{
    if (!s->user || !*s->user)
        return "has no user";
    if (s->auth && !listed(auth_names, s->auth))
        return "auth: must be one of SHA, SHA-224, SHA-256, SHA-384, SHA-512";
    if (s->priv && !listed(priv_names, s->priv))
        return "priv: must be one of AES, AES-192, AES-256, AES-192-C, AES-256-C";
    if (s->priv && !s->auth)
        return "priv: needs auth too";
    if (s->auth && (!s->auth_secret || strlen(s->auth_secret) < USM_LENGTH_P_MIN))
        return "auth_secret: needs 8 characters or more";
    if (s->priv && (!s->priv_secret || strlen(s->priv_secret) < USM_LENGTH_P_MIN))
        return "priv_secret: needs 8 characters or more";
    return NULL;
}

static const char *fill_user(struct ft_snmp_auth *auth, const struct ft_snmp_secrets *s)
{
    const char *wrong = complaint(s);

    if (wrong)
        return wrong;
    auth->user = strdup(s->user);
    auth->context = strdup(s->context ? s->context : "");
    if (!auth->user || !auth->context)
        return "out of memory";
    if (s->auth) {
        auth->auth_type = usm_lookup_auth_type(s->auth);
        if (auth->auth_type < 0 ||
            !derive(auth->auth_type, s->auth_secret, auth->auth_key, &auth->auth_key_bytes))
            return "auth: net-snmp was built without this protocol";
    }
    if (s->priv) {
        auth->priv_type = usm_lookup_priv_type(s->priv);
        if (auth->priv_type < 0 ||
            !derive(auth->auth_type, s->priv_secret, auth->priv_key, &auth->priv_key_bytes))
            return "priv: net-snmp was built without this protocol";
    }
    return NULL;
}

const char *ft_snmp_complaint(const struct ft_snmp_secrets *secrets)
{
    return secrets->version == 3 ? complaint(secrets) : NULL;
}

struct ft_snmp_auth *ft_snmp_auth_new(struct ft_snmp *snmp, const struct ft_snmp_secrets *secrets,
                                      char *error, size_t error_bytes)
{
    struct ft_snmp_auth *auth = calloc(1, sizeof(*auth));
    const char *wrong = NULL;

    (void)snmp; /* it has set the library up */
    if (!auth) {
        wrong = "out of memory";
    } else if (secrets->version == 3) {
        auth->version = 3;
        wrong = fill_user(auth, secrets);
    } else if (secrets->version == 2) {
        auth->version = 2;
        auth->community = strdup(secrets->community ? secrets->community : "");
        if (!auth->community)
            wrong = "out of memory";
        else if (!*auth->community)
            wrong = "has no community";
    } else {
        wrong = "version: is neither 2c nor 3";
    }
    if (!wrong)
        return auth;
    snprintf(error, error_bytes, "%s", wrong);
    ft_snmp_auth_free(auth);
    return NULL;
}

void ft_snmp_auth_free(struct ft_snmp_auth *auth)
{
    if (!auth)
        return;
    if (auth->community)
        explicit_bzero(auth->community, strlen(auth->community));
    free(auth->community);
    free(auth->user);
    free(auth->context);
    explicit_bzero(auth, sizeof(*auth));
    free(auth);
}
