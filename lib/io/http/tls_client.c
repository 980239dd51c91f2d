// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/tls_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ft_tls_client {
    SSL_CTX *context;
    SSL *ssl;
};

static int expect_host(SSL *ssl, const char *host)
{
    uint8_t address[16];

    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static int load(SSL_CTX *context, const char *ca, char *error, size_t error_bytes)
{
    unsigned long code;

    ERR_clear_error();
    if ((ca ? SSL_CTX_load_verify_file(context, ca) : SSL_CTX_set_default_verify_paths(context)) ==
        1)
        return 0;
    code = ERR_peek_error();
    snprintf(error, error_bytes, "%s: %s", ca ? ca : "the system's certificates",
             ERR_SYSTEM_ERROR(code)          ? strerror(ERR_GET_REASON(code))
             : ERR_reason_error_string(code) ? ERR_reason_error_string(code)
                                             : "no certificate");
    ERR_clear_error();
    return -EINVAL;
}

struct ft_tls_client *ft_tls_client_new(const char *ca, const char *host, int fd, char *error,
                                        size_t error_bytes)
{
    struct ft_tls_client *c = calloc(1, sizeof(*c));

    snprintf(error, error_bytes, "no memory for TLS");
    if (!c)
        return NULL;
    c->context = SSL_CTX_new(TLS_client_method());
    if (!c->context || load(c->context, ca, error, error_bytes) < 0)
        goto fail;
    SSL_CTX_set_min_proto_version(c->context, TLS1_2_VERSION);
    /* A server that ends without a word: the length, or the JSON, shows whether that was all. */
    SSL_CTX_set_options(c->context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_verify(c->context, SSL_VERIFY_PEER, NULL);
    c->ssl = SSL_new(c->context);
    if (!c->ssl || expect_host(c->ssl, host) != 1 || SSL_set_fd(c->ssl, fd) != 1)
        goto fail;
    SSL_set_connect_state(c->ssl);
    return c;
fail:
    ft_tls_client_free(c);
    return NULL;
}

void ft_tls_client_free(struct ft_tls_client *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    SSL_CTX_free(c->context);
    free(c);
}

/* What a call that returned `rc` means. */
static int result(const struct ft_tls_client *c, int rc)
{
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return -EAGAIN;
    case SSL_ERROR_WANT_WRITE:
        return -EBUSY;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        return errno ? -errno : -ECONNRESET;
    default:
        return -EPROTO;
    }
}

int ft_tls_client_shake_hands(struct ft_tls_client *c, char *error, size_t error_bytes)
{
    const char *reason;
    unsigned long code;
    long verified;
    int rc;

    ERR_clear_error();
    errno = 0;
    rc = SSL_connect(c->ssl);
    if (rc == 1)
        return 0;
    rc = result(c, rc);
    if (rc == 0)
        rc = -ECONNRESET;
    if (rc != -EPROTO)
        return rc;
    code = ERR_peek_error();
    verified = SSL_get_verify_result(c->ssl);
    reason = ERR_reason_error_string(code);
    if (verified != X509_V_OK) {
        snprintf(error, error_bytes, "its certificate is not accepted: %s",
                 X509_verify_cert_error_string(verified));
        rc = -EKEYREJECTED;
    } else if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER ||
               ERR_GET_REASON(code) == SSL_R_PACKET_LENGTH_TOO_LONG ||
               ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST) {
        snprintf(error, error_bytes, "it does not speak TLS; is it plain http://?");
    } else {
        snprintf(error, error_bytes, "TLS: %s", reason ? reason : "it fails");
    }
    ERR_clear_error();
    return rc;
}

ssize_t ft_tls_client_write(struct ft_tls_client *c, const void *bytes, size_t len)
{
    int rc;

    ERR_clear_error();
    errno = 0;
    rc = SSL_write(c->ssl, bytes, len < INT_MAX ? (int)len : INT_MAX);
    return rc > 0 ? rc : result(c, rc);
}

ssize_t ft_tls_client_read(struct ft_tls_client *c, void *bytes, size_t len)
{
    int rc;

    ERR_clear_error();
    errno = 0;
    rc = SSL_read(c->ssl, bytes, len < INT_MAX ? (int)len : INT_MAX);
    return rc > 0 ? rc : result(c, rc);
}
