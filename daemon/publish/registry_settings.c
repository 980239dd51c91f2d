// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/registry_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/base/secret.h"
#include "lib/io/endpoint.h"

#define ERROR_BYTES 512
#define HTTP        "http://"
#define HTTPS       "https://"

static void forget(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void ft_registry_settings_close(struct ft_registry_opened *o)
{
    forget(o->password);
    forget(o->token);
    *o = (struct ft_registry_opened){.password = NULL};
}

int ft_registry_settings_open(const struct ft_registry_settings *s, struct ft_registry_opened *out,
                              char *error, size_t error_bytes)
{
    struct ft_registry_opened o = {.config = {.url = s->url, .registers = s->registers}};
    int rc = 0;

    if (s->password_file)
        rc = ft_secret_password(s->password_file, &o.password, error, error_bytes);
    if (rc == 0 && s->token_file)
        rc = ft_secret_password(s->token_file, &o.token, error, error_bytes);
    if (rc < 0) {
        ft_registry_settings_close(&o);
        return rc;
    }
    o.config.http = (struct ft_web_client_config){.ca = s->ca,
                                                  .cert = s->cert,
                                                  .key = s->key,
                                                  .user = s->user,
                                                  .password = o.password,
                                                  .token = o.token};
    *out = o;
    return 0;
}

/* The part behind the scheme; NULL: it has another. */
static const char *rest_of(const char *url, const char *scheme)
{
    size_t len = strlen(scheme);

    return strncasecmp(url, scheme, len) == 0 && url[len] && url[len] != '/' ? url + len : NULL;
}

static bool is_local(const char *rest)
{
    char host[FT_HOST_BYTES + 8];
    size_t len = strcspn(rest, "/");
    const char *colon = memrchr(rest, ':', len), *bracket = memrchr(rest, ']', len);

    snprintf(host, sizeof(host), "%.*s%s", (int)(len < FT_HOST_BYTES ? len : FT_HOST_BYTES), rest,
             colon && (!bracket || colon > bracket) ? "" : ":80");
    return ft_endpoint_is_local(host);
}

static void check_url(const struct ft_registry_settings *s, const struct ft_run *run,
                      struct ft_diag *diag)
{
    const char *plain = rest_of(s->url, HTTP);

    if (strpbrk(s->url, "@?# "))
        ft_run_complain(run, diag, "kafka.registry.url",
                        "it has neither a user nor anything behind its path");
    else if (!plain && !rest_of(s->url, HTTPS))
        ft_run_complain(run, diag, "kafka.registry.url", "neither http://HOST nor https://HOST");
    else if (plain && (s->password_file || s->token_file) && !is_local(plain))
        ft_run_complain(run, diag, "kafka.registry.url",
                        "a secret does not go over http beyond this machine: use https");
}

static void check_file(const struct ft_run *run, struct ft_diag *diag, const char *key,
                       const char *path, bool secret)
{
    char error[ERROR_BYTES];

    if (!path)
        return;
    if (access(path, R_OK) < 0)
        ft_run_complain(run, diag, key, "'%s': %s", path, strerror(errno));
    else if (secret && ft_secret_check(path, error, sizeof(error)) < 0)
        ft_run_complain(run, diag, key, "'%s': %s", path, error);
}

void ft_registry_settings_check(const struct ft_registry_settings *s, bool keeps,
                                const struct ft_run *run, struct ft_diag *diag)
{
    struct ft_registry_opened opened;
    char error[ERROR_BYTES];

    if (!s->url)
        return;
#ifndef HAVE_CURL
    ft_run_complain(run, diag, "kafka.registry.url", "built without libcurl");
#endif
    check_url(s, run, diag);
    if (!keeps)
        ft_run_complain(run, diag, "kafka.registry.url",
                        "what waits for it needs kafka.spool, or kafka.transactions");
    if (!s->user != !s->password_file)
        ft_run_complain(run, diag, s->user ? "kafka.registry.user" : "kafka.registry.password_file",
                        "a user and a password_file go together");
    if (s->token_file && s->user)
        ft_run_complain(run, diag, "kafka.registry.token_file", "either a token or a user");
    if (!s->cert != !s->key)
        ft_run_complain(run, diag, s->cert ? "kafka.registry.cert" : "kafka.registry.key",
                        "a cert and a key go together");
    check_file(run, diag, "kafka.registry.ca", s->ca, false);
    check_file(run, diag, "kafka.registry.cert", s->cert, false);
    check_file(run, diag, "kafka.registry.key", s->key, true);
    if (ft_registry_settings_open(s, &opened, error, sizeof(error)) < 0)
        ft_run_complain(
            run, diag, s->token_file ? "kafka.registry.token_file" : "kafka.registry.password_file",
            "%s", error);
    else
        ft_registry_settings_close(&opened);
}
