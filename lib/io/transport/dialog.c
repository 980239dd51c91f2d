// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport/dialog.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/endpoint.h"
#include "lib/io/transport/stream.h"

struct ft_dialog {
    struct ft_dialog_config config;
    struct ft_loop *loop;
    void (*done)(void *arg, struct ft_dialog_result *result);
    void *arg;
    struct ft_connect *connect;
    struct bufferevent *bev;
    struct ft_watch *deadline;
    size_t line; /* that was said last */
};

static void let_go(struct ft_dialog *d)
{
    if (d->connect)
        ft_connect_free(d->connect);
    d->connect = NULL;
    if (d->bev)
        bufferevent_free(d->bev);
    d->bev = NULL;
    ft_watch_free(d->deadline);
    d->deadline = NULL;
}

static void end(struct ft_dialog *d, struct ft_dialog_result *result)
{
    let_go(d);
    d->done(d->arg, result);
}

static void fail(struct ft_dialog *d, int rc, const char *text)
{
    struct ft_dialog_result result = {.rc = rc};

    snprintf(result.text, sizeof(result.text), "%s", text);
    end(d, &result);
}

static void say(struct ft_dialog *d)
{
    struct evbuffer *out = bufferevent_get_output(d->bev);

    evbuffer_add_printf(out, "%s\n", d->config.lines[d->line].say);
}

static bool is_last(const struct ft_dialog *d)
{
    return d->config.lines[d->line].expect == NULL;
}

/* Takes answers, of a line each; false: it is over. */
static bool take_lines(struct ft_dialog *d)
{
    struct evbuffer *in = bufferevent_get_input(d->bev);

    while (!is_last(d)) {
        const char *expect = d->config.lines[d->line].expect;
        char text[FT_DIALOG_LINE_BYTES];
        size_t len;
        char *line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF);
        bool good;

        if (!line && evbuffer_get_length(in) < sizeof(text))
            return true;
        snprintf(text, sizeof(text), "%s", line ? line : "a line that does not end");
        good = line && strncmp(line, expect, strlen(expect)) == 0;
        free(line);
        if (!good) {
            fail(d, -EPROTO, text);
            return false;
        }
        d->line++;
        say(d);
    }
    return true;
}

static void on_input(struct bufferevent *bev, void *arg)
{
    struct ft_dialog *d = arg;
    struct ft_loop *loop = d->loop;
    struct ft_mono start = ft_mono_now();

    (void)bev;
    if (take_lines(d) && is_last(d) &&
        evbuffer_get_length(bufferevent_get_input(d->bev)) > d->config.answer_max)
        fail(d, -EMSGSIZE, "its answer is too long");
    ft_loop_step(loop, NULL, start);
}

static void take_answer(struct ft_dialog *d)
{
    struct evbuffer *in = bufferevent_get_input(d->bev);
    struct ft_dialog_result result = {.len = evbuffer_get_length(in)};

    result.answer = malloc(result.len + 1);
    if (!result.answer) {
        fail(d, -ENOMEM, strerror(ENOMEM));
        return;
    }
    evbuffer_remove(in, result.answer, result.len);
    result.answer[result.len] = '\0';
    end(d, &result);
}

static void take_end(struct ft_dialog *d, struct bufferevent *bev, short what)
{
    char reason[FT_STREAM_TEXT_BYTES];

    if (what & BEV_EVENT_EOF && is_last(d) &&
        evbuffer_get_length(bufferevent_get_input(bev)) <= d->config.answer_max) {
        take_answer(d);
        return;
    }
    ft_stream_reason(bev, what, reason);
    fail(d, -ECONNRESET, reason);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct ft_dialog *d = arg;
    struct ft_loop *loop = d->loop;
    struct ft_mono start = ft_mono_now();

    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        take_end(d, bev, what);
    ft_loop_step(loop, NULL, start);
}

static void on_connected(void *arg, int fd, const char *reason)
{
    struct ft_dialog *d = arg;

    if (fd < 0) {
        fail(d, fd, reason);
        return;
    }
    d->bev = ft_stream_new(d->loop, NULL, fd, NULL, d->config.timeout_ns);
    if (!d->bev) {
        fail(d, -ENOMEM, strerror(ENOMEM));
        return;
    }
    bufferevent_setcb(d->bev, on_input, NULL, on_event, d);
    bufferevent_enable(d->bev, EV_READ | EV_WRITE);
    say(d);
}

static void on_deadline(void *arg)
{
    fail(arg, -ETIMEDOUT, strerror(ETIMEDOUT));
}

int ft_dialog_start(struct ft_loop *loop, const struct ft_dialog_config *config,
                    void (*done)(void *arg, struct ft_dialog_result *result), void *arg,
                    struct ft_dialog **out)
{
    char host[FT_HOST_BYTES];
    uint16_t port;
    struct ft_dialog *d;

    if (ft_endpoint_split(config->endpoint, host, &port))
        return -EINVAL;
    d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    *d = (struct ft_dialog){.config = *config, .loop = loop, .done = done, .arg = arg};
    d->deadline = ft_watch_once(loop, on_deadline, d);
    if (d->deadline)
        d->connect = ft_connect_new(loop, host, port, config->timeout_ns, on_connected, d);
    if (!d->connect) {
        ft_dialog_free(d);
        return -ENOMEM;
    }
    ft_watch_once_arm(d->deadline, config->timeout_ns);
    *out = d;
    return 0;
}

void ft_dialog_free(struct ft_dialog *dialog)
{
    if (!dialog)
        return;
    let_go(dialog);
    free(dialog);
}
