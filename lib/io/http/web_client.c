// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/web_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef HAVE_CURL
struct ft_web_client *ft_web_client_new(struct ft_loop *loop,
                                        const struct ft_web_client_config *config, char *error,
                                        size_t error_bytes)
{
    (void)loop;
    (void)config;
    snprintf(error, error_bytes, "built without libcurl");
    return NULL;
}

/* No client can exist here. */
void ft_web_client_free(struct ft_web_client *client)
{
    (void)client;
}

int ft_web_client_post(struct ft_web_client *client, const char *url, const void *body, size_t len,
                       void (*done)(void *arg, const struct ft_web_answer *answer), void *arg)
{
    (void)client;
    (void)url;
    (void)body;
    (void)len;
    (void)done;
    (void)arg;
    return -ENOTSUP;
}
#else
#include <curl/curl.h>
#include <event2/event.h>

#include "lib/base/clock.h"
#include "lib/base/writer.h"

#define HEADER_BYTES 256
#define NS_PER_MS    1000000
#define STAGE        "publish"

struct ft_web_client {
    struct ft_loop *loop;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    struct event *timer;
    struct ft_writer answer;
    bool busy;
    void (*done)(void *arg, const struct ft_web_answer *answer);
    void *arg;
    char error[CURL_ERROR_SIZE];
};

static size_t take_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    struct ft_web_client *c = arg;

    ft_write_bytes(&c->answer, bytes, size * count);
    return ft_writer_ok(&c->answer) ? size * count : 0;
}

static void report(struct ft_web_client *c, CURLcode code)
{
    struct ft_web_answer answer = {.body = c->answer.bytes, .len = c->answer.len};
    char error[FT_WEB_CLIENT_ERROR_BYTES];
    long status = 0;

    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && status > 0) {
        answer.status = (int)status;
    } else {
        snprintf(error, sizeof(error), "%s",
                 !ft_writer_ok(&c->answer) ? "the answer is too long"
                 : *c->error               ? c->error
                                           : curl_easy_strerror(code));
        answer = (struct ft_web_answer){.error = error};
    }
    c->done(c->arg, &answer);
}

static void look_for_end(struct ft_web_client *c)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(c->multi, &left))) {
        CURLcode code = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_multi_remove_handle(c->multi, c->easy);
        c->busy = false;
        report(c, code);
        return; /* it may have asked for the next */
    }
}

static void act(struct ft_web_client *c, curl_socket_t fd, int what)
{
    struct ft_mono start = ft_mono_now();
    int running;

    curl_multi_socket_action(c->multi, fd, what, &running);
    look_for_end(c);
    ft_loop_step(c->loop, STAGE, start);
}

static void on_socket(evutil_socket_t fd, short events, void *arg)
{
    act(arg, fd,
        (events & EV_READ ? CURL_CSELECT_IN : 0) | (events & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_timer(evutil_socket_t fd, short events, void *arg)
{
    (void)fd;
    (void)events;
    act(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* libcurl says which socket it waits for, and for what. */
static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *kept)
{
    struct ft_web_client *c = arg;
    struct event *event = kept;
    short events = EV_PERSIST;

    (void)easy;
    if (event)
        event_free(event);
    event = NULL;
    if (what & CURL_POLL_IN)
        events |= EV_READ;
    if (what & CURL_POLL_OUT)
        events |= EV_WRITE;
    if (what != CURL_POLL_REMOVE)
        event = event_new(ft_loop_base(c->loop), fd, events, on_socket, c);
    /* Without memory for it the request ends when its time is over. */
    if (event)
        event_add(event, NULL);
    curl_multi_assign(c->multi, fd, event);
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *arg)
{
    struct ft_web_client *c = arg;
    struct timeval after = {.tv_sec = timeout_ms / 1000,
                            .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000};

    (void)multi;
    if (timeout_ms < 0)
        event_del(c->timer);
    else
        event_add(c->timer, &after);
    return 0;
}

static bool add_header(struct ft_web_client *c, const char *name, const char *value)
{
    char line[HEADER_BYTES];
    struct curl_slist *more;

    snprintf(line, sizeof(line), "%s:%s%s", name, *value ? " " : "", value);
    more = curl_slist_append(c->headers, line);
    c->headers = more ? more : c->headers;
    return more;
}

static bool set_headers(struct ft_web_client *c, const char *content_type)
{
    /* No "Expect: 100-continue", which some do not know. */
    return add_header(c, "Content-Type", content_type) && add_header(c, "Accept", content_type) &&
           add_header(c, "Expect", "") &&
           curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK;
}

static CURLcode set_protocols(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
}

static CURLcode set_who(CURL *easy, const struct ft_web_client_config *config)
{
    CURLcode rc = CURLE_OK;

    if (config->user)
        rc = curl_easy_setopt(easy, CURLOPT_USERNAME, config->user);
    if (rc == CURLE_OK && config->user)
        rc = curl_easy_setopt(easy, CURLOPT_PASSWORD, config->password ? config->password : "");
    if (rc == CURLE_OK && config->token)
        rc = curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    if (rc == CURLE_OK && config->token)
        rc = curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, config->token);
    if (rc == CURLE_OK && config->ca)
        rc = curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca);
    if (rc == CURLE_OK && config->cert)
        rc = curl_easy_setopt(easy, CURLOPT_SSLCERT, config->cert);
    if (rc == CURLE_OK && config->key)
        rc = curl_easy_setopt(easy, CURLOPT_SSLKEY, config->key);
    return rc;
}

static bool set_options(struct ft_web_client *c, const struct ft_web_client_config *config)
{
    long timeout_ms = (long)(config->timeout_ns / NS_PER_MS);

    return set_headers(c, config->content_type) && set_protocols(c->easy) == CURLE_OK &&
           set_who(c->easy, config) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) ==
               CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, timeout_ms) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->error) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, take_bytes) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c) == CURLE_OK &&
           curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, set_socket) == CURLM_OK &&
           curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c) == CURLM_OK &&
           curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, set_timer) == CURLM_OK &&
           curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c) == CURLM_OK;
}

struct ft_web_client *ft_web_client_new(struct ft_loop *loop,
                                        const struct ft_web_client_config *config, char *error,
                                        size_t error_bytes)
{
    struct ft_web_client *c = calloc(1, sizeof(*c));

    if (c && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) {
        c->loop = loop;
        ft_writer_init(&c->answer, config->answer_bytes_max);
        c->multi = curl_multi_init();
        c->easy = curl_easy_init();
        c->timer = evtimer_new(ft_loop_base(loop), on_timer, c);
    }
    if (c && c->multi && c->easy && c->timer && set_options(c, config))
        return c;
    snprintf(error, error_bytes, "libcurl: %s", c ? "an option is not known there" : "no memory");
    ft_web_client_free(c);
    return NULL;
}

void ft_web_client_free(struct ft_web_client *c)
{
    if (!c)
        return;
    if (c->busy)
        curl_multi_remove_handle(c->multi, c->easy);
    /* What its connections have left is taken back by set_socket() and set_timer(). */
    curl_multi_cleanup(c->multi);
    curl_easy_cleanup(c->easy);
    curl_slist_free_all(c->headers);
    if (c->timer)
        event_free(c->timer);
    ft_writer_free(&c->answer);
    free(c);
}

int ft_web_client_post(struct ft_web_client *c, const char *url, const void *body, size_t len,
                       void (*done)(void *arg, const struct ft_web_answer *answer), void *arg)
{
    if (c->busy)
        return -EBUSY;
    ft_writer_reset(&c->answer);
    c->error[0] = '\0';
    if (curl_easy_setopt(c->easy, CURLOPT_URL, url) != CURLE_OK)
        return -EINVAL;
    if (curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE, (long)len) != CURLE_OK ||
        curl_easy_setopt(c->easy, CURLOPT_COPYPOSTFIELDS, body) != CURLE_OK ||
        curl_multi_add_handle(c->multi, c->easy) != CURLM_OK)
        return -ENOMEM;
    c->done = done;
    c->arg = arg;
    c->busy = true;
    return 0;
}
#endif
