// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_TLS_CLIENT_H
#define FT_IO_HTTP_TLS_CLIENT_H
/*
 * TLS 1.2 and later for a client that shows no certificate, over a connected descriptor that does
 * not block: for get.c. The server's certificate must be of the authority and have the host's
 * name. Owner: the caller. Thread: one.
 */
#include <stddef.h>
#include <sys/types.h>

struct ft_tls_client;

/* ca: PEM file of authorities; NULL: those of the system. host: a name or an address. NULL with a
 * complaint that names the file. The descriptor stays the caller's. */
struct ft_tls_client *ft_tls_client_new(const char *ca, const char *host, int fd, char *error,
                                        size_t error_bytes);
void ft_tls_client_free(struct ft_tls_client *client);

/* Each does what can be done now. -EAGAIN: wait until the descriptor can be read, -EBUSY: written.
 * -EKEYREJECTED: the certificate is not accepted; -EPROTO: TLS fails, or is not spoken there; both
 * with a reason in error. Another -errno: the connection failed. */
int ft_tls_client_shake_hands(struct ft_tls_client *client, char *error, size_t error_bytes);
ssize_t ft_tls_client_write(struct ft_tls_client *client, const void *bytes, size_t len);
/* 0: the server has ended it in order. */
ssize_t ft_tls_client_read(struct ft_tls_client *client, void *bytes, size_t len);

#endif
