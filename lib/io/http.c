// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/io/endpoint.h"

#define TIMEOUT_S          15
#define REQUEST_HEAD_BYTES (16 << 10)
#define REQUEST_BODY_BYTES (64 << 10)
#define ROUTES_MAX         64

struct route {
    char *path;
    char *content_type;
    int (*handler)(void *arg, const struct ft_http_request *request, struct ft_writer *body);
    void *arg;
};

struct ft_http {
    struct ft_loop *loop;
    struct evhttp *server;
    uint16_t port;
    struct route routes[ROUTES_MAX];
    size_t route_count;
};

struct ft_http_request {
    struct evkeyvalq query;
};

static const char *status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 503:
        return "Service Unavailable";
    default:
        return "Internal Server Error";
    }
}

static void free_bytes(const void *bytes, size_t len, void *arg)
{
    (void)len;
    (void)arg;
    free((void *)bytes);
}

/* Takes the writer's bytes. */
static void answer(struct evhttp_request *req, int status, const char *content_type,
                   struct ft_writer *body)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    struct evbuffer *out = evhttp_request_get_output_buffer(req);

    evhttp_add_header(headers, "Content-Type", status == 200 ? content_type : "text/plain");
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    if (body->len && evbuffer_add_reference(out, body->bytes, body->len, free_bytes, NULL) == 0)
        ft_writer_init(body, body->max);
    else
        ft_writer_free(body);
    evhttp_send_reply(req, status, status_text(status), NULL);
}

static void complain(struct evhttp_request *req, int status, const char *text)
{
    struct ft_writer body;

    ft_writer_init(&body, 1024);
    ft_write_str(&body, text);
    answer(req, status, NULL, &body);
}

static const struct route *find_route(const struct ft_http *http, const char *path)
{
    for (size_t i = 0; i < http->route_count; i++)
        if (strcmp(http->routes[i].path, path) == 0)
            return &http->routes[i];
    return NULL;
}

static void run_route(struct evhttp_request *req, const struct route *route, const char *query)
{
    struct ft_http_request request;
    struct ft_writer body;
    int status;

    if (evhttp_parse_query_str(query ? query : "", &request.query) < 0) {
        complain(req, 400, "the query cannot be read\n");
        return;
    }
    ft_writer_init(&body, FT_HTTP_BODY_BYTES_MAX);
    status = route->handler(route->arg, &request, &body);
    evhttp_clear_headers(&request.query);
    if (ft_writer_ok(&body)) {
        answer(req, status, route->content_type, &body);
    } else {
        /* Half an answer would pass for a whole one. */
        ft_writer_free(&body);
        complain(req, 503, "the answer is too large\n");
    }
}

static void serve(const struct ft_http *http, struct evhttp_request *req)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    const struct route *route = path ? find_route(http, path[0] ? path : "/") : NULL;

    if (!route) {
        complain(req, 404, "there is nothing here\n");
    } else if (evhttp_request_get_command(req) != EVHTTP_REQ_GET) {
        evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", "GET");
        complain(req, 405, "only GET is served\n");
    } else {
        run_route(req, route, evhttp_uri_get_query(uri));
    }
}

static void handle_request(struct evhttp_request *req, void *arg)
{
    const struct ft_http *http = arg;
    struct ft_mono start = ft_mono_now();

    serve(http, req);
    ft_loop_step(http->loop, start);
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
    return 0;
}

struct ft_http *ft_http_new(struct ft_loop *loop, const char *listen, char *error,
                            size_t error_bytes)
{
    struct ft_http *http = calloc(1, sizeof(*http));
    int fd;

    if (!http || !(http->server = evhttp_new(ft_loop_base(loop)))) {
        snprintf(error, error_bytes, "no memory");
        ft_http_free(http);
        return NULL;
    }
    http->loop = loop;
    evhttp_set_timeout(http->server, TIMEOUT_S);
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
    if (http->server)
        evhttp_free(http->server);
    for (size_t i = 0; i < http->route_count; i++) {
        free(http->routes[i].path);
        free(http->routes[i].content_type);
    }
    free(http);
}

uint16_t ft_http_port(const struct ft_http *http)
{
    return http->port;
}

int ft_http_route(struct ft_http *http, const char *path, const char *content_type,
                  int (*handler)(void *arg, const struct ft_http_request *request,
                                 struct ft_writer *body),
                  void *arg)
{
    struct route route = {.handler = handler, .arg = arg};

    if (http->route_count == ROUTES_MAX)
        return -ENOMEM;
    route.path = strdup(path);
    route.content_type = strdup(content_type);
    if (!route.path || !route.content_type) {
        free(route.path);
        free(route.content_type);
        return -ENOMEM;
    }
    http->routes[http->route_count++] = route;
    return 0;
}

const char *ft_http_query(const struct ft_http_request *request, const char *name)
{
    return evhttp_find_header(&request->query, name);
}
