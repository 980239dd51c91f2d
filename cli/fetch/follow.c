// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/fetch/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/fetch/fetch.h"
#include "cli/output/grid.h"
#include "cli/output/text.h"
#include "cli/output/units.h"
#include "cli/show/show.h"

#define MS_IN_S 1000
/* How far back each request looks for events that are over, so that none falls between two. */
#define OVERLAP_MS 60000

/* The same event in the same state: its evidence may have changed. */
static bool is_same(const struct ft_value *a, const struct ft_value *b)
{
    static const char *const texts[] = {"kind", "subject"};
    uint64_t since_a = 0, since_b = 0;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = ft_value_str(a, texts[i]);

        if (text ? !ft_value_is(b, texts[i], text) : ft_value_str(b, texts[i]) != NULL)
            return false;
    }
    ft_value_uint(a, "since_ms", &since_a);
    ft_value_uint(b, "since_ms", &since_b);
    return since_a == since_b && ft_value_true(a, "cleared") == ft_value_true(b, "cleared");
}

static bool has(const struct ft_value *list, const struct ft_value *record)
{
    for (size_t i = 0; i < ft_value_count(list); i++)
        if (is_same(ft_value_at(list, i), record))
            return true;
    return false;
}

/* "10:41:22  warning   collision         MESSAGE", with the time of what happened. */
static void put_line(const struct ft_screen *screen, const struct ft_value *record)
{
    const char *severity = ft_value_str(record, "severity"), *kind = ft_value_str(record, "kind");
    char *what = ft_text_event(record);
    bool over = ft_value_true(record, "cleared");
    char time[FT_UNIT_BYTES] = "";
    uint64_t ms;

    if (ft_value_uint(record, over ? "time_ms" : "since_ms", &ms))
        ft_unit_time(time, ms, screen->now);
    fprintf(screen->out, "%s  %-8s  %-15s  ", time,
            over       ? "over"
            : severity ? severity
                       : "",
            kind ? kind : "");
    ft_screen_text(screen,
                   over                                          ? FT_GREEN
                   : ft_value_is(record, "severity", "critical") ? FT_RED
                   : ft_value_is(record, "severity", "warning")  ? FT_YELLOW
                                                                 : FT_PLAIN,
                   what);
    free(what);
    fputc('\n', screen->out);
}

static int put(const struct ft_args *args, const struct ft_value *record)
{
    struct ft_screen screen;

    if (args->json)
        return ft_show_json_line(stdout, record);
    ft_screen_init(&screen, stdout);
    put_line(&screen, record);
    return 0;
}

/* Whether nobody reads standard output any more: a pipe whose other end is closed. */
static bool is_closed(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    return poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP);
}

/* Nobody reads any more: what is left to be written goes nowhere. */
static int drop_rest(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
        return EX_IOERR;
    close(null);
    clearerr(stdout);
    return FT_FETCH_ENDED;
}

/* What is not in the list before; of the first answer (before is NULL) only what is active. */
static int put_new(const struct ft_args *args, const struct ft_value *records,
                   const struct ft_value *before)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < ft_value_count(records); i++) {
        const struct ft_value *record = ft_value_at(records, i);

        if (before ? !has(before, record) : !ft_value_true(record, "cleared"))
            rc = put(args, record);
    }
    if (rc)
        return EX_OSERR;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EX_OK;
    return is_closed() ? drop_rest() : EX_IOERR;
}

/* True when it is time to end: by a signal, or since nobody reads any more. */
static bool is_over(int signals, unsigned interval_s)
{
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.fd = STDOUT_FILENO}};

    return poll(fds, 2, (int)interval_s * MS_IN_S) > 0;
}

/* Asks; a daemon that does not answer is reported once, until it does again. */
static int ask(const struct ft_args *args, struct ft_answer **answer, bool *silent)
{
    char *why = NULL;
    size_t bytes;
    FILE *err = open_memstream(&why, &bytes);
    int rc;

    if (!err)
        return EX_OSERR;
    rc = ft_fetch(args, answer, err);
    if (fclose(err) == 0 && !*silent)
        fputs(why, stderr);
    free(why);
    /* It did answer as fabrictraced before: its end cut this one off. */
    if (rc == EX_PROTOCOL)
        rc = EX_UNAVAILABLE;
    *silent = rc == EX_UNAVAILABLE;
    return rc;
}

/* From the window that the daemon closed last, by its own clock. */
static uint64_t look_back(const struct ft_answer *answer)
{
    uint64_t ms = 0;

    ft_value_uint(ft_answer_root(answer), "window_end_ms", &ms);
    return ms > OVERLAP_MS ? ms - OVERLAP_MS : 0;
}

static int follow(struct ft_args *args)
{
    struct ft_answer *before = NULL, *answer = NULL;
    bool silent = false;
    int rc = ft_fetch(args, &answer, stderr);

    if (rc)
        return rc;
    args->has_from = true;
    args->from_ms = look_back(answer);
    ft_answer_free(answer);
    do {
        rc = ask(args, &answer, &silent);
        if (rc == EX_UNAVAILABLE)
            continue;
        if (rc)
            break;
        rc = put_new(args, ft_value_get(ft_answer_root(answer), "records"),
                     before ? ft_value_get(ft_answer_root(before), "records") : NULL);
        /* Never further back: what is over would come once more. */
        if (look_back(answer) > args->from_ms)
            args->from_ms = look_back(answer);
        ft_answer_free(before);
        before = answer;
    } while ((rc == EX_OK || rc == EX_UNAVAILABLE) && !is_over(args->stop_fd, args->interval_s));
    ft_answer_free(before);
    return rc == EX_UNAVAILABLE ? EX_OK : rc;
}

int ft_follow_run(const struct ft_args *args)
{
    struct ft_args own = *args;
    sigset_t ends;
    int rc;

    /* A closed pipe is seen where a write fails. */
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &ends, NULL) == 0)
        own.stop_fd = signalfd(-1, &ends, SFD_CLOEXEC);
    if (own.stop_fd < 0) {
        fprintf(stderr, "fabrictrace events: signals: %s\n", strerror(errno));
        return EX_OSERR;
    }
    rc = follow(&own);
    close(own.stop_fd);
    return rc == FT_FETCH_ENDED ? EX_OK : rc;
}
