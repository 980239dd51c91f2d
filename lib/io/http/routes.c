// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/http/http_impl.h"

int ft_http_route(struct ft_http *http, const char *path, const char *content_type,
                  int (*handler)(void *arg, const struct ft_http_request *request,
                                 struct ft_writer *body),
                  void *arg)
{
    struct ft_http_route route = {.handler = handler, .arg = arg};

    if (http->route_count == FT_HTTP_ROUTES_MAX)
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

const struct ft_http_route *ft_http_find_route(const struct ft_http *http, const char *path)
{
    for (size_t i = 0; i < http->route_count; i++)
        if (strcmp(http->routes[i].path, path) == 0)
            return &http->routes[i];
    return NULL;
}

const char *ft_http_query(const struct ft_http_request *request, const char *name)
{
    return evhttp_find_header(request->query, name);
}

const char *ft_http_unknown_query(const struct ft_http_request *request, const char *const *names)
{
    const struct evkeyval *parameter, *other;

    TAILQ_FOREACH(parameter, request->query, next)
    {
        size_t i = 0;

        while (names[i] && strcmp(names[i], parameter->key) != 0)
            i++;
        if (!names[i])
            return parameter->key;
        for (other = TAILQ_NEXT(parameter, next); other; other = TAILQ_NEXT(other, next))
            if (strcmp(other->key, parameter->key) == 0)
                return parameter->key;
    }
    return NULL;
}
