// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/io/endpoint.h"
#include "lib/io/http/http_impl.h"
#include "lib/io/http/rendering.h"
#include "lib/io/transport/tls.h"

#define PATIENCE_S         15
#define REQUEST_HEAD_BYTES (16 << 10)
#define REQUEST_BODY_BYTES (64 << 10)
#define CONNECTIONS_MAX    256

static void complain(struct ft_http *http, struct evhttp_request *req, int status, const char *text)
{
    ft_http_problem(http, req, status, text, strlen(text));
}

/* Sends what a handler has made. */
static void reply(struct ft_http *http, struct evhttp_request *req,
                  const struct ft_http_route *route, const struct ft_http_asked *asked,
                  const struct ft_http_reply *reply, int status, struct ft_writer *body)
{
    if (status == 200 && reply->slices.more) {
        ft_writer_free(body);
        ft_http_slice(http, req, route->content_type, reply->tag, asked, &reply->slices);
        return;
    }
    if (reply->slices.more)
        reply->slices.free(reply->slices.arg);
    if (status == 200) {
        ft_http_answer(http, req, route->content_type, reply->tag, body);
        return;
    }
    if (status == 304)
        ft_http_answer_empty(http, req, status, reply->tag);
    else
        ft_http_problem(http, req, status, (const char *)body->bytes, body->len);
    ft_writer_free(body);
}

static void run_route(struct ft_http *http, struct evhttp_request *req,
                      const struct ft_http_route *route, const char *query)
{
    struct evkeyvalq parameters;
    struct ft_http_reply said = {.tag = ""};
    struct ft_http_request request = {http, req, &parameters, &said};
    const struct ft_http_asked asked = {route->path, query, ft_http_takes_gzip(req)};
    struct ft_writer body;
    size_t left;
    int status;

    if (ft_http_join(http, req, route->content_type, &asked))
        return;
    if (evhttp_parse_query_str(query ? query : "", &parameters) < 0) {
        complain(http, req, 400, "the query cannot be read");
        return;
    }
    left = ft_http_room_left(&http->room);
    ft_writer_init(&body, left < FT_HTTP_BODY_BYTES_MAX ? left : FT_HTTP_BODY_BYTES_MAX);
    status = route->handler(route->arg, &request, &body);
    evhttp_clear_headers(&parameters);
    if (said.taken) {
        ft_writer_free(&body);
    } else if (ft_writer_ok(&body)) {
        reply(http, req, route, &asked, &said, status, &body);
    } else {
        /* Half an answer would pass for a complete one. */
        ft_writer_free(&body);
        if (said.slices.more)
            said.slices.free(said.slices.arg);
        http->room.stats.answers_refused++;
        complain(http, req, 503,
                 left < FT_HTTP_BODY_BYTES_MAX ? "too many responses are pending: try again later"
                                               : "the answer is too large");
    }
}

/* Whether a request is for us, by the host that it names: one without, in HTTP/1.0, does not come
 * from a browser. */
static bool is_for_us(const struct ft_http *http, struct evhttp_request *req)
{
    const char *named = evhttp_request_get_host(req);
    char host[FT_HOST_BYTES];
    size_t len = named ? strlen(named) : 0;
    struct in6_addr address;

    if (len == 0)
        return true;
    if (len >= 2 && named[0] == '[' && named[len - 1] == ']') {
        named++;
        len -= 2;
    } else if (named[len - 1] == '.') {
        len--;
    }
    if (len >= sizeof(host))
        return false;
    memcpy(host, named, len);
    host[len] = '\0';
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return true;
    for (size_t i = 0; i < http->name_count; i++)
        if (strcasecmp(http->names[i], host) == 0)
            return true;
    return false;
}

static bool is_reading(struct evhttp_request *req)
{
    return evhttp_request_get_command(req) == EVHTTP_REQ_GET ||
           evhttp_request_get_command(req) == EVHTTP_REQ_HEAD;
}

static bool is_file(const struct ft_http *http, const char *path)
{
    for (size_t i = 0; i < http->file_count; i++)
        if (strcmp(http->files[i].path, path) == 0)
            return true;
    return false;
}

/* What watches over the program needs no token. */
static bool is_open(const struct ft_http *http, const char *path)
{
    return strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0 || is_file(http, path);
}

/* The time that this takes does not depend on the token. */
static bool has_token(const struct ft_http *http, struct evhttp_request *req)
{
    static const char scheme[] = "Bearer ";
    const char *said = evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
    size_t len = strlen(http->token);
    unsigned differ = 0;

    if (!said || strncasecmp(said, scheme, sizeof(scheme) - 1) != 0)
        return false;
    said += sizeof(scheme) - 1;
    said += strspn(said, " ");
    if (strlen(said) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        differ |= (unsigned char)said[i] ^ (unsigned char)http->token[i];
    return differ == 0;
}

static void name_origin(const struct ft_http *http, struct evhttp_request *req)
{
    const char *origin = evhttp_find_header(evhttp_request_get_input_headers(req), "Origin");
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);

    for (size_t i = 0; origin && i < http->origin_count; i++) {
        if (strcmp(http->origins[i], origin) != 0)
            continue;
        evhttp_add_header(headers, "Access-Control-Allow-Origin", origin);
        evhttp_add_header(headers, "Vary", "Origin");
        return;
    }
}

static void serve(struct ft_http *http, struct evhttp_request *req)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    const struct ft_http_route *route;

    if (path && !path[0])
        path = "/";
    route = path ? ft_http_find_route(http, path) : NULL;
    if (!is_for_us(http, req)) {
        complain(http, req, 421, "this is not a name of this server");
    } else if (!route && !(path && is_file(http, path))) {
        complain(http, req, 404, "there is no such page");
    } else if (!is_reading(req)) {
        evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", "GET, HEAD");
        complain(http, req, 405, "only GET and HEAD are served");
    } else if (http->token && !is_open(http, path) && !has_token(http, req)) {
        evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate", "Bearer");
        complain(http, req, 401, "a valid token is needed");
    } else if (route) {
        name_origin(http, req);
        run_route(http, req, route, evhttp_uri_get_query(uri));
    } else {
        ft_http_serve_file(http, req, path);
    }
}

static void handle_request(struct evhttp_request *req, void *arg)
{
    struct ft_http *http = arg;
    struct ft_mono start = ft_mono_now();

    serve(http, req);
    ft_loop_step(http->room.loop, "http", start);
}

static int start_listening(struct ft_http *http, struct ft_loop *loop, int fd)
{
    struct evconnlistener *listener = evconnlistener_new(
        ft_loop_base(loop), NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1, fd);

    if (!listener) {
        close(fd);
        return -ENOMEM;
    }
    if (!evhttp_bind_listener(http->server, listener)) {
        evconnlistener_free(listener);
        return -ENOMEM;
    }
    ft_http_room_listen(&http->room, listener);
    return 0;
}

static int add_text(char ***list, size_t *count, const char *text)
{
    char **grown = realloc(*list, (*count + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    *list = grown;
    grown[*count] = strdup(text);
    if (!grown[*count])
        return -ENOMEM;
    ++*count;
    return 0;
}

int ft_http_allow(struct ft_http *http, const char *name)
{
    return add_text(&http->names, &http->name_count, name);
}

int ft_http_allow_origin(struct ft_http *http, const char *origin)
{
    return add_text(&http->origins, &http->origin_count, origin);
}

int ft_http_need_token(struct ft_http *http, const char *token)
{
    char *copy = token ? strdup(token) : NULL;

    if (token && !copy)
        return -ENOMEM;
    free(http->token);
    http->token = copy;
    return 0;
}

int ft_http_secure(struct ft_http *http, const char *cert, const char *key, char *error,
                   size_t error_bytes)
{
    struct ft_tls *tls = ft_tls_server_new(cert, key, error, error_bytes);

    if (!tls)
        return -EINVAL;
    /* Connections hold the context that they were made with. */
    ft_tls_free(http->room.tls);
    http->room.tls = tls;
    return 0;
}

static int allow_own_names(struct ft_http *http, const char *listen)
{
    char host[FT_HOST_BYTES] = "", self[FT_HOST_BYTES] = "";
    uint16_t port;

    ft_endpoint_split(listen, host, &port);
    if (gethostname(self, sizeof(self) - 1) < 0)
        self[0] = '\0';
    return ft_http_allow(http, "localhost") || ft_http_allow(http, host) ||
                   ft_http_allow(http, self)
               ? -ENOMEM
               : 0;
}

struct ft_http *ft_http_new(struct ft_loop *loop, const char *listen, char *error,
                            size_t error_bytes)
{
    struct ft_http *http = calloc(1, sizeof(*http));
    int fd;

    if (!http || !(http->server = evhttp_new(ft_loop_base(loop))) ||
        ft_http_room_open(&http->room, loop) || !ft_http_slices_open(http) ||
        allow_own_names(http, listen) < 0) {
        snprintf(error, error_bytes, "no memory");
        ft_http_free(http);
        return NULL;
    }
    ft_http_limit(http, CONNECTIONS_MAX, FT_HTTP_BODY_BYTES_MAX);
    evhttp_set_bevcb(http->server, ft_http_room_stream, &http->room);
    ft_http_patience(http, PATIENCE_S);
    evhttp_set_max_headers_size(http->server, REQUEST_HEAD_BYTES);
    evhttp_set_max_body_size(http->server, REQUEST_BODY_BYTES);
    /* All methods come through, so that each gets an answer in our words. */
    evhttp_set_allowed_methods(http->server, UINT16_MAX);
    evhttp_set_gencb(http->server, handle_request, http);
    fd = ft_endpoint_listen(listen, &http->port, error, error_bytes);
    if (fd < 0) {
        ft_http_free(http);
        return NULL;
    }
    if (start_listening(http, loop, fd) < 0) {
        snprintf(error, error_bytes, "no memory");
        ft_http_free(http);
        return NULL;
    }
    return http;
}

void ft_http_free(struct ft_http *http)
{
    if (!http)
        return;
    ft_http_slices_free(http);
    ft_http_channels_free(http);
    if (http->server)
        evhttp_free(http->server);
    ft_http_room_close(&http->room);
    for (size_t i = 0; i < http->route_count; i++) {
        free(http->routes[i].path);
        free(http->routes[i].content_type);
    }
    for (size_t i = 0; i < http->name_count; i++)
        free(http->names[i]);
    free(http->names);
    for (size_t i = 0; i < http->origin_count; i++)
        free(http->origins[i]);
    free(http->origins);
    free(http->token);
    ft_tls_free(http->room.tls);
    free(http);
}

uint16_t ft_http_port(const struct ft_http *http)
{
    return http->port;
}

void ft_http_patience(struct ft_http *http, int seconds)
{
    http->room.patience_s = seconds;
    evhttp_set_timeout(http->server, seconds);
}

void ft_http_limit(struct ft_http *http, uint32_t connections_max, size_t bytes_max)
{
    http->room.connections_max = connections_max;
    http->room.bytes_max = bytes_max;
}

void ft_http_stats(const struct ft_http *http, struct ft_http_stats *stats)
{
    *stats = http->room.stats;
}
