// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/secret.h"

#define NAME_BYTES_MAX 255
#define NAMES_MAX      64

struct ft_tls {
    SSL_CTX *context;
    bool has_crl;
};

bool ft_tls_configured(const struct ft_tls_files *files)
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

/* Where it is, be it a credential. */
static int find(const char *name, char file[PATH_MAX], char *error, size_t error_bytes)
{
    int rc = ft_secret_file(name, file);

    if (rc < 0)
        snprintf(error, error_bytes, "%s: %s", name, strerror(-rc));
    return rc;
}

/* The certificate and the key of this end. */
static int load_own(SSL_CTX *context, const struct ft_tls_files *files, char *error,
                    size_t error_bytes)
{
    char reason[128], cert[PATH_MAX], key[PATH_MAX];

    if (find(files->cert, cert, error, error_bytes) < 0 ||
        find(files->key, key, error, error_bytes) < 0)
        return -1;
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, cert) != 1)
        return complain(files->cert, error, error_bytes);
    if (ft_secret_check(key, reason, sizeof(reason)) < 0) {
        snprintf(error, error_bytes, "%s: %s", files->key, reason);
        return -1;
    }
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return complain(files->key, error, error_bytes);
    if (SSL_CTX_check_private_key(context) != 1)
        return complain(files->key, error, error_bytes);
    return 0;
}

/* Each certificate of a chain is looked up, those of authorities between as well. Without
 * a list of its authority, or with one that is out of date, none is accepted: a list that nobody
 * renews must not let in whom it would name. */
static int load_revoked(SSL_CTX *context, const char *crl, char *error, size_t error_bytes)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    char file[PATH_MAX];

    if (find(crl, file, error, error_bytes) < 0)
        return -1;
    ERR_clear_error();
    if (!lookup || X509_load_crl_file(lookup, file, X509_FILETYPE_PEM) <= 0)
        return complain(crl, error, error_bytes);
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return 0;
}

static int load(SSL_CTX *context, const struct ft_tls_files *files, char *error, size_t error_bytes)
{
    STACK_OF(X509_NAME) * names;
    char ca[PATH_MAX];

    if (load_own(context, files, error, error_bytes) < 0 ||
        find(files->ca, ca, error, error_bytes) < 0)
        return -1;
    if (SSL_CTX_load_verify_file(context, ca) != 1)
        return complain(files->ca, error, error_bytes);
    names = SSL_load_client_CA_file(ca);
    if (!names)
        return complain(files->ca, error, error_bytes);
    SSL_CTX_set_client_CA_list(context, names);
    return files->crl ? load_revoked(context, files->crl, error, error_bytes) : 0;
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
    tls->has_crl = files->crl;
    return tls;
}

struct ft_tls *ft_tls_server_new(const char *cert, const char *key, char *error, size_t error_bytes)
{
    const struct ft_tls_files files = {.cert = cert, .key = key};
    struct ft_tls *tls = calloc(1, sizeof(*tls));

    if (!tls || !(tls->context = SSL_CTX_new(TLS_server_method()))) {
        snprintf(error, error_bytes, "no memory for TLS");
        free(tls);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    if (load_own(tls->context, &files, error, error_bytes) < 0) {
        ft_tls_free(tls);
        return NULL;
    }
    return tls;
}

int ft_tls_server_check(const char *cert, const char *key, char *error, size_t error_bytes)
{
    struct ft_tls *tls = ft_tls_server_new(cert, key, error, error_bytes);

    ft_tls_free(tls);
    return tls ? 0 : -EINVAL;
}

struct bufferevent *ft_tls_accept(struct ft_tls *tls, struct event_base *base)
{
    SSL *ssl = SSL_new(tls->context);
    struct bufferevent *bev =
        ssl ? bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                             BEV_OPT_CLOSE_ON_FREE)
            : NULL;

    /* A client that closes without an alert has all that it asked for. */
    if (bev)
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

int ft_tls_check(const struct ft_tls_files *files, const char **which, char *error,
                 size_t error_bytes)
{
    struct ft_tls *tls = ft_tls_new(files, error, error_bytes);
    const struct {
        const char *name, *file;
    } named[] = {
        {"cert", files->cert}, {"key", files->key}, {"ca", files->ca}, {"crl", files->crl}};

    ft_tls_free(tls);
    if (tls)
        return 0;
    *which = "cert";
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        size_t len = named[i].file ? strlen(named[i].file) : 0;

        /* The complaint begins with the file's name. */
        if (len && strncmp(error, named[i].file, len) == 0 && error[len] == ':')
            *which = named[i].name;
    }
    return -EINVAL;
}

void ft_tls_free(struct ft_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->context);
    free(tls);
}

int ft_tls_load(const struct ft_tls *now, const struct ft_tls_files *files, struct ft_tls **loaded,
                char *error, size_t error_bytes)
{
    if (!now || !ft_tls_configured(files)) {
        snprintf(error, error_bytes, "TLS can be enabled or disabled only by a restart");
        return -EINVAL;
    }
    *loaded = ft_tls_new(files, error, error_bytes);
    return *loaded ? 0 : -EINVAL;
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
    /* Acknowledgements show what arrived, so an end without close_notify loses nothing. */
    bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

bool ft_tls_is(struct bufferevent *bev)
{
    return bufferevent_openssl_get_ssl(bev);
}

/* A name may hold any byte, a NUL as well: one that a text cannot hold is not used. */
static bool is_name(const unsigned char *bytes, int len)
{
    for (int i = 0; i < len; i++)
        if (bytes[i] < 0x21 || bytes[i] > 0x7e)
            return false;
    return len > 0 && len <= NAME_BYTES_MAX;
}

/* NULL for what is not a name of use here, or without memory. */
static char *name_of(const GENERAL_NAME *name)
{
    const ASN1_STRING *value = NULL;
    const unsigned char *bytes;
    char address[INET6_ADDRSTRLEN], *text = NULL;
    int type, len;

    value = GENERAL_NAME_get0_value(name, &type);
    if (!value || (type != GEN_URI && type != GEN_DNS && type != GEN_IPADD))
        return NULL;
    bytes = ASN1_STRING_get0_data(value);
    len = ASN1_STRING_length(value);
    if (type == GEN_IPADD) {
        if ((len != 4 && len != 16) ||
            !inet_ntop(len == 4 ? AF_INET : AF_INET6, bytes, address, sizeof(address)))
            return NULL;
        bytes = (const unsigned char *)address;
        len = (int)strlen(address);
    }
    if (!is_name(bytes, len) || asprintf(&text, "%s:%.*s",
                                         type == GEN_URI   ? "URI"
                                         : type == GEN_DNS ? "DNS"
                                                           : "IP",
                                         len, (const char *)bytes) < 0)
        return NULL;
    return text;
}

int ft_tls_peer_names(struct bufferevent *bev, struct ft_peer_names *names)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    X509 *certificate = ssl ? SSL_get0_peer_certificate(ssl) : NULL;
    GENERAL_NAMES *all;
    int count;

    *names = (struct ft_peer_names){0};
    all = certificate ? X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL) : NULL;
    if (!all)
        return 0;
    count = sk_GENERAL_NAME_num(all);
    names->items = calloc((size_t)count + 1, sizeof(*names->items));
    for (int i = 0; names->items && i < count && names->count < NAMES_MAX; i++) {
        names->items[names->count] = name_of(sk_GENERAL_NAME_value(all, i));
        names->count += names->items[names->count] != NULL;
    }
    GENERAL_NAMES_free(all);
    return names->items ? 0 : -ENOMEM;
}

void ft_peer_names_clear(struct ft_peer_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct ft_peer_names){0};
}

bool ft_tls_has_list(const struct ft_tls *tls)
{
    return tls->has_crl;
}

bool ft_tls_still_accepts(struct ft_tls *tls, struct bufferevent *bev, char *reason,
                          size_t reason_bytes)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    X509 *certificate = ssl ? SSL_get0_peer_certificate(ssl) : NULL;
    X509_STORE_CTX *judge;
    bool accepts;

    if (!tls->has_crl)
        return true;
    snprintf(reason, reason_bytes, "it has shown no certificate yet, and others are accepted now");
    judge = certificate ? X509_STORE_CTX_new() : NULL;
    accepts = judge &&
              X509_STORE_CTX_init(judge, SSL_CTX_get_cert_store(tls->context), certificate,
                                  SSL_get_peer_cert_chain(ssl)) == 1 &&
              X509_STORE_CTX_set_default(judge, SSL_is_server(ssl) ? "ssl_client" : "ssl_server") &&
              X509_verify_cert(judge) == 1;
    if (judge && !accepts)
        snprintf(reason, reason_bytes, "its certificate is no longer accepted: %s",
                 X509_verify_cert_error_string(X509_STORE_CTX_get_error(judge)));
    X509_STORE_CTX_free(judge);
    ERR_clear_error();
    return accepts;
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
