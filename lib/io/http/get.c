// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/http.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/io/endpoint.h"
#include "lib/io/http/response.h"
#include "lib/io/http/tls_client.h"

#define REQUEST_BYTES_MAX (64 << 10)
#define NOT_HTTP          "the answer is not HTTP"

struct get {
    const struct ft_http_server *server;
    char endpoint[FT_ENDPOINT_BYTES]; /* HOST:PORT alone */
    const char *scheme;
    struct ft_tls_client *tls; /* NULL: plain */
    struct ft_mono end;
    int fd;
    int stop_fd;
    char *error;
    size_t error_bytes;
    FILE *out; /* takes the body of a 200; NULL: it stays in memory */
    struct ft_http_response response;
};

static int fail(const struct get *get, int err, const char *what)
{
    snprintf(get->error, get->error_bytes, "%s%s: %s", get->scheme, get->endpoint, what);
    return err;
}

static int fail_errno(const struct get *get, int err)
{
    return fail(get, -err, strerror(err));
}

/* Waits until the socket can be read or written. 0, -ETIMEDOUT or another -errno. */
static int wait_for(const struct get *get, short events)
{
    /* poll(2) leaves out what is negative. */
    struct pollfd fds[] = {{.fd = get->fd, .events = events},
                           {.fd = get->stop_fd, .events = POLLIN}};
    int64_t left_ns = ft_mono_since_ns(get->end, ft_mono_now());
    int ret;

    if (left_ns <= 0)
        return -ETIMEDOUT;
    if (left_ns > FT_HTTP_QUIET_NS)
        left_ns = FT_HTTP_QUIET_NS;
    ret = poll(fds, 2, (int)((left_ns + 999999) / 1000000));
    if (get->stop_fd >= 0 && ((ret < 0 && errno == EINTR) || (ret > 0 && fds[1].revents)))
        return -ECANCELED;
    if (ret > 0 || (ret < 0 && errno == EINTR))
        return 0;
    return ret == 0 ? -ETIMEDOUT : -errno;
}

static int connect_one(struct get *get, const struct addrinfo *info)
{
    int err = 0;
    socklen_t len = sizeof(err);

    get->fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (get->fd < 0)
        return -errno;
    if (connect(get->fd, info->ai_addr, info->ai_addrlen) == 0)
        return 0;
    err = errno == EINPROGRESS ? -wait_for(get, POLLOUT) : errno;
    if (err == 0 && getsockopt(get->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        err = errno;
    if (err) {
        close(get->fd);
        get->fd = -1;
    }
    return -err;
}

static int connect_any(struct get *get)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    char host[FT_HOST_BYTES], service[8];
    uint16_t port;
    int ret;

    if (ft_endpoint_split(get->endpoint, host, &port) < 0 || !host[0])
        return fail(get, -EINVAL, "no HOST:PORT");
    snprintf(service, sizeof(service), "%u", port);
    ret = getaddrinfo(host, service, &hints, &list);
    if (ret)
        return fail(get, -EHOSTUNREACH, gai_strerror(ret));
    ret = -EADDRNOTAVAIL;
    for (const struct addrinfo *info = list; info && ret < 0; info = info->ai_next)
        ret = connect_one(get, info);
    freeaddrinfo(list);
    return ret < 0 ? fail_errno(get, -ret) : 0;
}

#define HTTP  "http://"
#define HTTPS "https://"

/* Takes the endpoint apart, and looks whether the token may go there. */
static int find_server(struct get *get)
{
    const char *text = get->server->endpoint;
    size_t len;

    get->scheme = HTTP;
    if (strncasecmp(text, HTTPS, strlen(HTTPS)) == 0) {
        get->scheme = HTTPS;
        text += strlen(HTTPS);
    } else if (strncasecmp(text, HTTP, strlen(HTTP)) == 0) {
        text += strlen(HTTP);
    }
    len = strcspn(text, "/");
    snprintf(get->endpoint, sizeof(get->endpoint), "%.*s", (int)len, text);
    if (len >= sizeof(get->endpoint) || (text[len] && text[len + 1]))
        return fail(get, -EINVAL, "no HOST:PORT");
    if (get->server->token && strcmp(get->scheme, HTTP) == 0 &&
        !ft_endpoint_is_local(get->endpoint))
        return fail(get, -EPERM, "the token would go there in the clear; write https://");
    return 0;
}

/* Reads and writes through TLS where that is spoken; the same results as of read(2), but -errno,
 * and -EBUSY where it has to be waited until it can be written. */
static ssize_t receive(const struct get *get, void *bytes, size_t len)
{
    ssize_t n;

    if (get->tls)
        return ft_tls_client_read(get->tls, bytes, len);
    n = recv(get->fd, bytes, len, 0);
    return n < 0 ? -errno : n;
}

static ssize_t transmit(const struct get *get, const void *bytes, size_t len)
{
    ssize_t n;

    if (get->tls)
        return ft_tls_client_write(get->tls, bytes, len);
    n = send(get->fd, bytes, len, MSG_NOSIGNAL);
    return n >= 0 ? n : errno == EAGAIN ? -EBUSY : -errno;
}

/* After a call that could not continue: waits, 0; or what it failed of. */
static int wait_after(const struct get *get, ssize_t result)
{
    if (result == -EAGAIN)
        return wait_for(get, POLLIN);
    if (result == -EBUSY)
        return wait_for(get, POLLOUT);
    return result == -EINTR ? 0 : (int)result;
}

static int secure(struct get *get)
{
    char host[FT_HOST_BYTES], why[256] = "";
    uint16_t port;
    int rc;

    if (strcmp(get->scheme, HTTPS) != 0)
        return 0;
    if (ft_endpoint_split(get->endpoint, host, &port) < 0)
        return fail(get, -EINVAL, "no HOST:PORT");
    get->tls = ft_tls_client_new(get->server->ca, host, get->fd, why, sizeof(why));
    if (!get->tls)
        return fail(get, -ENOKEY, why);
    while ((rc = ft_tls_client_shake_hands(get->tls, why, sizeof(why))) < 0) {
        if (rc == -EKEYREJECTED || rc == -EPROTO)
            return fail(get, rc, why);
        rc = wait_after(get, rc);
        if (rc < 0)
            return fail_errno(get, -rc);
    }
    return 0;
}

static int send_request(const struct get *get, const char *target)
{
    struct ft_writer w;
    size_t sent = 0;
    int ret = 0;

    ft_writer_init(&w, REQUEST_BYTES_MAX);
    ft_write_fmt(&w, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", target, get->endpoint);
    if (get->server->token)
        ft_write_fmt(&w, "Authorization: Bearer %s\r\n", get->server->token);
    ft_write_str(&w, "\r\n");
    if (!ft_writer_ok(&w) || strpbrk(target, " \r\n"))
        ret = -EINVAL;
    while (ret == 0 && sent < w.len) {
        ssize_t n = transmit(get, w.bytes + sent, w.len - sent);

        if (n >= 0)
            sent += (size_t)n;
        else
            ret = wait_after(get, n);
    }
    ft_writer_free(&w);
    return ret < 0 ? fail_errno(get, -ret) : 0;
}

/* Takes in a piece of the answer; the body of a 200 goes to the file where there is one. */
static int take(struct get *get, const uint8_t *bytes, size_t len, struct ft_writer *w)
{
    struct ft_http_response *r = &get->response;

    while (len && !ft_http_response_complete(r)) {
        const uint8_t *body;
        size_t body_len;
        ssize_t n = ft_http_response_take(r, bytes, len, &body, &body_len);

        if (n < 0)
            return fail(get, (int)n, n == -ENOMEM ? "no memory" : NOT_HTTP);
        if (get->out && r->status == 200) {
            if (fwrite(body, 1, body_len, get->out) != body_len)
                return fail_errno(get, errno);
        } else {
            ft_write_bytes(w, body, body_len);
        }
        if (!ft_writer_ok(w))
            return fail(get, -EMSGSIZE, "the answer is too large");
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

/* The status of a complete answer. */
static int receive_all(struct get *get, struct ft_writer *w)
{
    uint8_t piece[16384];
    int status, ret = 0;

    while (!ft_http_response_complete(&get->response)) {
        ssize_t n = receive(get, piece, sizeof(piece));

        if (n == 0)
            break;
        if (n > 0) {
            ret = take(get, piece, (size_t)n, w);
            if (ret < 0)
                return ret;
            continue;
        }
        ret = wait_after(get, n);
        if (ret < 0)
            return fail_errno(get, -ret);
    }
    status = ft_http_response_end(&get->response);
    return status >= 0
               ? status
               : fail(get, status, status == -ENODATA ? "the answer was cut off" : NOT_HTTP);
}

int ft_http_save(const struct ft_http_server *server, const char *target, int64_t timeout_ns,
                 int stop_fd, FILE *out, struct ft_writer *body, char *error, size_t error_bytes)
{
    struct get get = {
        .server = server,
        .end = {ft_mono_now().ns + timeout_ns},
        .fd = -1,
        .stop_fd = stop_fd,
        .error = error,
        .error_bytes = error_bytes,
        .out = out,
    };
    int ret;

    ft_http_response_init(&get.response);
    ret = find_server(&get);
    if (ret == 0)
        ret = connect_any(&get);
    if (ret == 0)
        ret = secure(&get);
    if (ret == 0)
        ret = send_request(&get, target);
    if (ret == 0)
        ret = receive_all(&get, body);
    ft_http_response_free(&get.response);
    ft_tls_client_free(get.tls);
    if (get.fd >= 0)
        close(get.fd);
    return ret;
}

int ft_http_ask(const struct ft_http_server *server, const char *target, int64_t timeout_ns,
                int stop_fd, struct ft_writer *body, char *error, size_t error_bytes)
{
    return ft_http_save(server, target, timeout_ns, stop_fd, NULL, body, error, error_bytes);
}

int ft_http_get(const char *endpoint, const char *target, int64_t timeout_ns, int stop_fd,
                struct ft_writer *body, char *error, size_t error_bytes)
{
    const struct ft_http_server server = {.endpoint = endpoint};

    return ft_http_ask(&server, target, timeout_ns, stop_fd, body, error, error_bytes);
}
