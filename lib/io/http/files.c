// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <event2/http.h>
#include <string.h>

#include "lib/io/http/http_impl.h"

/* What a page of ours may do: nothing but with what comes from here. */
#define POLICY                                                                                     \
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "            \
    "object-src 'none'"

void ft_http_files(struct ft_http *http, const struct ft_http_file *files, size_t count)
{
    http->files = files;
    http->file_count = count;
}

static const struct ft_http_file *find(const struct ft_http *http, const char *path)
{
    for (size_t i = 0; i < http->file_count; i++)
        if (strcmp(http->files[i].path, path) == 0)
            return &http->files[i];
    return NULL;
}

bool ft_http_serve_file(struct ft_http *http, struct evhttp_request *req, const char *path)
{
    static const char no_gzip[] = "this is available only with gzip encoding";
    const struct ft_http_file *file = find(http, path);
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    struct ft_writer body;

    if (!file)
        return false;
    ft_writer_init(&body, FT_HTTP_BODY_BYTES_MAX);
    evhttp_add_header(headers, "Content-Security-Policy", POLICY);
    evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
    if (ft_http_has_tag(req, file->etag)) {
        ft_http_answer_empty(http, req, 304, file->etag);
    } else if (ft_http_names_gzip(req)) {
        ft_write_bytes(&body, file->gzip, file->gzip_bytes);
        ft_http_answer_packed(http, req, file->content_type, file->etag, &body);
    } else if (ft_gzip_unpack(file->gzip, file->gzip_bytes, file->plain_bytes, &body) == 0) {
        ft_http_answer(http, req, file->content_type, file->etag, &body);
    } else {
        ft_writer_free(&body);
        ft_http_problem(http, req, 406, no_gzip, sizeof(no_gzip) - 1);
    }
    return true;
}
