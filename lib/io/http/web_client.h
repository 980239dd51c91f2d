// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_WEB_CLIENT_H
#define FT_IO_HTTP_WEB_CLIENT_H
/*
 * Requests to a web service from inside the loop (libcurl): one at a time, and nothing waits for
 * its answer. Names are resolved by a thread of libcurl's. An answer is read up to a limit, a
 * request takes a time at most, and no redirection is followed. A proxy is used where the
 * environment names one (curl(1)). Owner: the caller. Thread: the loop's.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"

#define FT_WEB_CLIENT_ERROR_BYTES 320

struct ft_web_client_config {
    const char *ca;              /* authorities (PEM); NULL: those of the system */
    const char *cert, *key;      /* to show (PEM), both or none */
    const char *user, *password; /* Authorization: Basic; NULL: none */
    const char *token;           /* Authorization: Bearer; NULL: none */
    const char *content_type;    /* of both what is sent and what is answered */
    int64_t timeout_ns;
    size_t answer_bytes_max;
};

struct ft_web_answer {
    int status;        /* 0: there is none, error says why */
    const char *error; /* NULL with a status */
    const void *body;
    size_t len;
};

struct ft_web_client;

/* Keeps a copy of all of it. NULL with a reason; "built without libcurl" where that is so. */
struct ft_web_client *ft_web_client_new(struct ft_loop *loop,
                                        const struct ft_web_client_config *config, char *error,
                                        size_t error_bytes);

/* What is in progress is given up, and done() is not called. Takes NULL. */
void ft_web_client_free(struct ft_web_client *client);

/* POST of these bytes, which are copied. done() is called once, later; it may ask for the next, and
 * may not free the client. The answer is good until it returns. -EBUSY: one is in progress;
 * -EINVAL: no such URL; -ENOMEM. */
int ft_web_client_post(struct ft_web_client *client, const char *url, const void *body, size_t len,
                       void (*done)(void *arg, const struct ft_web_answer *answer), void *arg);

#endif
