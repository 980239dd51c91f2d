// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/tls.h"

#include <arpa/inet.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ft_tls {
    SSL_CTX *context;
};

bool ft_tls_wanted(const struct ft_tls_files *files)
{
    return files->cert || files->key || files->ca;
}

static const char *openssl_reason(unsigned long code)
{
    const char *reason = NULL;

    if (ERR_SYSTEM_ERROR(code))
        return strerror(ERR_GET_REASON(code));
    if (code)
        reason = ERR_reason_error_string(code);
    return reason ? reason : "unknown TLS error";
}

static int complain(const char *file, char *error, size_t error_bytes)
{
    /* The first entry is the cause; those behind it are where it was noticed. */
    snprintf(error, error_bytes, "%s: %s", file, openssl_reason(ERR_peek_error()));
    ERR_clear_error();
    return -1;
}

static int load(SSL_CTX *context, const struct ft_tls_files *files, char *error, size_t error_bytes)
{
    STACK_OF(X509_NAME) * names;

    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1)
        return complain(files->cert, error, error_bytes);
    if (SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) != 1)
        return complain(files->key, error, error_bytes);
    if (SSL_CTX_check_private_key(context) != 1)
        return complain(files->key, error, error_bytes);
    if (SSL_CTX_load_verify_file(context, files->ca) != 1)
        return complain(files->ca, error, error_bytes);
    names = SSL_load_client_CA_file(files->ca);
    if (!names)
        return complain(files->ca, error, error_bytes);
    SSL_CTX_set_client_CA_list(context, names);
    return 0;
}

struct ft_tls *ft_tls_new(const struct ft_tls_files *files, char *error, size_t error_bytes)
{
    struct ft_tls *tls;

    if (!files->cert || !files->key || !files->ca) {
        snprintf(error, error_bytes, "TLS needs all of certificate, key and CA file");
        return NULL;
    }
    tls = calloc(1, sizeof(*tls));
    if (!tls || !(tls->context = SSL_CTX_new(TLS_method()))) {
        snprintf(error, error_bytes, "no memory for TLS");
        free(tls);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(tls->context, TLS1_3_VERSION);
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    /* Connections last; a resumed one would only skip the check of the certificates. */
    SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(tls->context, 0);
    if (load(tls->context, files, error, error_bytes) < 0) {
        ft_tls_free(tls);
        return NULL;
    }
    return tls;
}

void ft_tls_free(struct ft_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->context);
    free(tls);
}

static bool expect_host(SSL *ssl, const char *host)
{
    uint8_t address[16];

    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct bufferevent *ft_tls_wrap(struct ft_tls *tls, struct event_base *base, int fd,
                                const char *host)
{
    SSL *ssl = SSL_new(tls->context);
    struct bufferevent *bev;

    if (!ssl)
        return NULL;
    if (host && !expect_host(ssl, host)) {
        SSL_free(ssl);
        return NULL;
    }
    bev = bufferevent_openssl_socket_new(
        base, fd, ssl, host ? BUFFEREVENT_SSL_CONNECTING : BUFFEREVENT_SSL_ACCEPTING,
        BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!bev)
        /* libevent's failure paths differ in whether they free ssl: to leak it once beats twice. */
        return NULL;
    /* Acknowledgements tell what arrived, so an end without close_notify loses nothing. */
    bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

bool ft_tls_is(struct bufferevent *bev)
{
    return bufferevent_openssl_get_ssl(bev);
}

void ft_tls_write_now(struct bufferevent *bev, const void *bytes, size_t len)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);

    if (ssl && SSL_is_init_finished(ssl) && len <= INT_MAX)
        SSL_write(ssl, bytes, (int)len);
    ERR_clear_error();
}

bool ft_tls_reason(struct bufferevent *bev, char *text, size_t text_bytes)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    unsigned long code = 0, next;
    long verified;

    /* They come in reverse, so the last is the cause, but for libevent's own, of no library. */
    while (ssl && (next = bufferevent_get_openssl_error(bev)))
        if (ERR_SYSTEM_ERROR(next) || ERR_GET_LIB(next))
            code = next;
    if (!code)
        return false;
    verified = SSL_get_verify_result(ssl);
    if (verified != X509_V_OK && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        snprintf(text, text_bytes, "its certificate is not accepted: %s",
                 X509_verify_cert_error_string(verified));
    else
        snprintf(text, text_bytes, "TLS: %s", openssl_reason(code));
    return true;
}
