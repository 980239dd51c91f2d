// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_TRANSPORT_TLS_H
#define FT_IO_TRANSPORT_TLS_H
/*
 * Mutual TLS 1.3 for the transport (OpenSSL inside libevent's bufferevents). Both ends show a
 * certificate of the given authority; the end that connects also checks the host name. And TLS for
 * HTTP servers, by their own certificate alone.
 */
#include <stdbool.h>
#include <stddef.h>

#include "lib/io/transport/transport.h"

struct bufferevent;
struct event_base;
struct ft_tls;

/* True when a certificate, a key or an authority is named. */
bool ft_tls_configured(const struct ft_tls_files *files);

/* Loads the files. NULL with a complaint that names the file, also for a key that everybody on this
 * machine may read. */
struct ft_tls *ft_tls_new(const struct ft_tls_files *files, char *error, size_t error_bytes);
void ft_tls_free(struct ft_tls *tls);

/* 0 when ft_tls_new() would load them; -EINVAL with its complaint, and which of the files that is
 * about: "cert", "key", "ca" or "crl". */
int ft_tls_check(const struct ft_tls_files *files, const char **which, char *error,
                 size_t error_bytes);

/* Loads the files in place of those that are used now. -EINVAL with a complaint, also where there
 * is no TLS (now is NULL) or is to be none. */
int ft_tls_load(const struct ft_tls *now, const struct ft_tls_files *files, struct ft_tls **loaded,
                char *error, size_t error_bytes);

/* Wraps a connected descriptor, which the result then owns. host: the name that the peer's
 * certificate must have, for the end that connects; NULL for the end that accepts. Callbacks are
 * deferred. NULL without memory; the descriptor is then still the caller's. */
struct bufferevent *ft_tls_wrap(struct ft_tls *tls, struct event_base *base, int fd,
                                const char *host);

/* TLS for a server whose clients show no certificate: HTTPS. From version 1.2 on. NULL with a
 * complaint that names the file. */
struct ft_tls *ft_tls_server_new(const char *cert, const char *key, char *error,
                                 size_t error_bytes);

/* 0 when ft_tls_server_new() would load them, else -EINVAL with its complaint. */
int ft_tls_server_check(const char *cert, const char *key, char *error, size_t error_bytes);

/* A stream for a connection that is to be accepted, and set as its descriptor later. NULL without
 * memory. */
struct bufferevent *ft_tls_accept(struct ft_tls *tls, struct event_base *base);

/* True when the stream is one of ft_tls_wrap(). */
bool ft_tls_is(struct bufferevent *bev);

/* The names in the certificate that the peer has shown; none for another stream. -ENOMEM. What was
 * got is given back by ft_peer_names_clear(). */
int ft_tls_peer_names(struct bufferevent *bev, struct ft_peer_names *names);
void ft_peer_names_clear(struct ft_peer_names *names);

/* Whether it has a list of revoked certificates. */
bool ft_tls_has_list(const struct ft_tls *tls);

/* Whether tls would accept the certificate that the peer of a stream has shown, where it has a list
 * of revoked ones; true where it has none. Else with the reason. */
bool ft_tls_still_accepts(struct ft_tls *tls, struct bufferevent *bev, char *reason,
                          size_t reason_bytes);

/* Writes at once what fits, for a last word before closing. */
void ft_tls_write_now(struct bufferevent *bev, const void *bytes, size_t len);

/* Why the stream failed; false when TLS has nothing to say. Removes what it reports from the
 * stream. */
bool ft_tls_reason(struct bufferevent *bev, char *text, size_t text_bytes);

#endif
