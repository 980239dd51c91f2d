// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/top/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/fetch/fetch.h"
#include "cli/top/show_top.h"
#include "cli/top/top_fetch.h"
#include "cli/top/top_screen.h"
#include "cli/top/top_view.h"
#include "lib/base/clock.h"

#define DEPTH_MAX   16 /* of views that lie below the one that shows */
#define NS_PER_S    INT64_C(1000000000)
#define MS_PER_S    1000
#define SLOW_S      2 /* from then on is said that an answer is awaited */
#define FRAME_LINES 2 /* names of the views above, keys or what is wrong below */
#define LINE_BYTES  512

/* Lists are views that stay; what is opened from them lies on top. */
struct top {
    const struct ft_args *args;
    struct ft_top_fetch *fetch;
    struct ft_top_view *lists[FT_TOP_EXPLAIN];
    struct ft_top_view *opened[DEPTH_MAX];
    size_t depth;
    enum ft_top_kind list;
    int signals;
    struct ft_mono asked, next; /* when the last request began; when the next is due */
    char wrong[LINE_BYTES];     /* with the last one; "": nothing */
    bool over;
};

/* What a request of several commands brings without a terminal, on a FILE. The exit status. */
static int show_once(const struct ft_args *args)
{
    static const enum ft_command commands[FT_TOP_ANSWERS] = {FT_COMMAND_IMBALANCE, FT_COMMAND_LINKS,
                                                             FT_COMMAND_EVENTS};
    struct ft_answer *answers[FT_TOP_ANSWERS] = {NULL, NULL, NULL};
    struct ft_screen screen;
    int rc = 0;

    for (int i = 0; rc == 0 && i < FT_TOP_ANSWERS; i++) {
        struct ft_args one = *args;

        one.command = commands[i];
        rc = ft_fetch(&one, &answers[i], stderr);
    }
    if (rc == 0) {
        const struct ft_top top = {
            .imbalance = ft_answer_root(answers[0]),
            .links = ft_answer_root(answers[1]),
            .events = ft_answer_root(answers[2]),
        };

        ft_screen_init(&screen, stdout);
        if (ft_show_top(&screen, &top, 0) < 0) {
            fprintf(stderr, "fabrictrace: no memory\n");
            rc = EX_OSERR;
        }
    }
    for (int i = 0; i < FT_TOP_ANSWERS; i++)
        ft_answer_free(answers[i]);
    return rc;
}

static struct ft_top_view *view_of(const struct top *t)
{
    return t->depth ? t->opened[t->depth - 1] : t->lists[t->list];
}

static unsigned lines_of(unsigned height)
{
    return height > FRAME_LINES ? height - FRAME_LINES : 1;
}

static bool has_colours(void)
{
    const char *no_color = getenv("NO_COLOR");

    return !(no_color && *no_color);
}

/* The lists with their keys; or what was opened, from which list on. */
static void draw_head(const struct top *t)
{
    char text[LINE_BYTES] = "";
    size_t n = 0;

    for (int i = 0; i < FT_TOP_EXPLAIN && n < sizeof(text); i++) {
        bool shown = (enum ft_top_kind)i == t->list;

        if (shown || !t->depth)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%d %s%s", n ? "  " : "",
                                  shown ? "\033[1m" : "", i + 1, ft_top_view_name(t->lists[i]),
                                  shown ? "\033[0m" : "");
    }
    for (size_t i = 0; i < t->depth && n < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, " > %s", ft_top_view_name(t->opened[i]));
    ft_top_screen_line(0, text, strlen(text), false);
}

/* What is wrong, that an answer is awaited, or the keys. */
static void draw_foot(const struct top *t, unsigned y)
{
    const char *order = ft_top_view_order(view_of(t));
    int64_t awaited_s = ft_mono_since_ns(ft_mono_now(), t->asked) / NS_PER_S;
    char text[2 * LINE_BYTES];

    if (*t->wrong)
        snprintf(text, sizeof(text), "\033[1;31m%s\033[0m", t->wrong);
    else if (ft_top_fetch_is_in_flight(t->fetch) && awaited_s >= SLOW_S)
        snprintf(text, sizeof(text), "\033[33mno answer for %lld s\033[0m", (long long)awaited_s);
    else
        snprintf(text, sizeof(text),
                 "q quits  enter opens  backspace returns  s sorts%s%s%s  r reverses  u asks anew",
                 order ? " (" : "", order ? order : "", order ? ")" : "");
    ft_top_screen_line(y, text, strlen(text), false);
}

static int draw(const struct top *t)
{
    struct ft_top_view *view = view_of(t);
    static const char awaited[] = "asking fabrictraced ...";
    unsigned width, height;
    size_t len, line;
    int rc;

    ft_top_screen_size(&width, &height);
    rc = ft_top_view_lay_out(view, width, lines_of(height), has_colours());
    if (rc < 0)
        return rc;
    draw_head(t);
    for (unsigned y = 1; y + 1 < height; y++) {
        line = ft_top_view_first(view) + y - 1;
        if (line < ft_top_view_lines(view)) {
            const char *text = ft_top_view_line(view, line, &len);

            ft_top_screen_line(y, text, len, line == ft_top_view_marked(view));
        } else if (y == 1 && !ft_top_view_has_answer(view)) {
            ft_top_screen_line(y, awaited, sizeof(awaited) - 1, false);
        } else {
            ft_top_screen_line(y, "", 0, false);
        }
    }
    if (height > 1)
        draw_foot(t, height - 1);
    ft_top_screen_show();
    return 0;
}

static int ask(struct top *t)
{
    struct ft_args args = *t->args;
    enum ft_command commands[FT_TOP_ANSWERS];
    size_t count = ft_top_view_asks(view_of(t), &args, commands);

    t->asked = ft_mono_now();
    t->next = (struct ft_mono){t->asked.ns + (int64_t)t->args->interval_s * NS_PER_S};
    return ft_top_fetch_begin(t->fetch, &args, commands, count);
}

static void take(struct top *t)
{
    struct ft_top_result result;

    if (!ft_top_fetch_take(t->fetch, &result))
        return;
    *t->wrong = '\0';
    if (result.rc == EX_OK)
        ft_top_view_take(view_of(t), &result);
    else if (result.rc != FT_FETCH_ENDED)
        snprintf(t->wrong, sizeof(t->wrong), "%.*s",
                 result.error ? (int)strcspn(result.error, "\n") : 0,
                 result.error ? result.error : "");
    ft_top_result_free(&result);
}

/* What is in progress was for the view before. */
static int go_to(struct top *t)
{
    *t->wrong = '\0';
    return ask(t);
}

static int open_marked(struct top *t)
{
    const char *about = ft_top_view_about(view_of(t));
    struct ft_top_view *view;

    if (!about || t->depth == DEPTH_MAX)
        return 0;
    view = ft_top_view_new(FT_TOP_EXPLAIN, about);
    if (!view)
        return -ENOMEM;
    t->opened[t->depth++] = view;
    return go_to(t);
}

static int go_back(struct top *t)
{
    if (!t->depth)
        return 0;
    ft_top_fetch_stop(t->fetch);
    ft_top_view_free(t->opened[--t->depth]);
    return go_to(t);
}

static int go_to_list(struct top *t, enum ft_top_kind list)
{
    ft_top_fetch_stop(t->fetch);
    while (t->depth)
        ft_top_view_free(t->opened[--t->depth]);
    t->list = list;
    return go_to(t);
}

static void move(struct top *t, int key)
{
    unsigned width, height;
    long page, rows;

    ft_top_screen_size(&width, &height);
    page = (long)lines_of(height);
    switch (key) {
    case FT_KEY_UP:
    case 'k':
        rows = -1;
        break;
    case FT_KEY_DOWN:
    case 'j':
        rows = 1;
        break;
    case FT_KEY_PAGE_UP:
    case 'b':
        rows = -page;
        break;
    case FT_KEY_PAGE_DOWN:
    case ' ':
        rows = page;
        break;
    case FT_KEY_HOME:
    case 'g':
        rows = -INT32_MAX;
        break;
    case FT_KEY_END:
    case 'G':
        rows = INT32_MAX;
        break;
    default:
        return;
    }
    ft_top_view_move(view_of(t), rows, lines_of(height));
}

static int on_key(struct top *t, int key)
{
    if (key >= '1' && key < '1' + FT_TOP_EXPLAIN)
        return go_to_list(t, (enum ft_top_kind)(key - '1'));
    switch (key) {
    case 'q':
    case 'Q':
        t->over = true;
        return 0;
    case FT_KEY_ENTER:
        return open_marked(t);
    case FT_KEY_BACK:
        return go_back(t);
    case 's':
        ft_top_view_sort(view_of(t), 1);
        return 0;
    case 'S':
        ft_top_view_sort(view_of(t), -1);
        return 0;
    case 'r':
        ft_top_view_reverse(view_of(t));
        return 0;
    case 'u':
        return ask(t);
    default:
        move(t, key);
        return 0;
    }
}

static void on_signal(struct top *t)
{
    struct signalfd_siginfo signal;

    if (read(t->signals, &signal, sizeof(signal)) < 0 || signal.ssi_signo != SIGWINCH)
        t->over = true;
    else
        ft_top_screen_resized();
}

/* Until something happens, or the next request or the next second of an awaited answer is due. */
static void await(struct top *t)
{
    bool asking = ft_top_fetch_is_in_flight(t->fetch);
    int64_t left_ns = -ft_mono_since_ns(ft_mono_now(), t->next);
    int timeout = asking ? MS_PER_S : left_ns <= 0 ? 0 : (int)(left_ns / (NS_PER_S / MS_PER_S)) + 1;
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = t->signals, .events = POLLIN},
                           {.fd = ft_top_fetch_fd(t->fetch), .events = POLLIN}};

    if (poll(fds, sizeof(fds) / sizeof(fds[0]), timeout) < 0 && errno != EINTR)
        t->over = true;
    if (fds[1].revents)
        on_signal(t);
    /* A terminal that went away can be read, and gives nothing. */
    if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
        t->over = true;
    if (fds[2].revents)
        take(t);
}

static int go_on(struct top *t)
{
    int rc = ask(t), key;

    while (rc == 0 && !t->over) {
        rc = draw(t);
        if (rc == 0)
            await(t);
        while (rc == 0 && !t->over && (key = ft_top_screen_key()))
            rc = on_key(t, key);
        if (rc == 0 && !t->over && !ft_top_fetch_is_in_flight(t->fetch) &&
            ft_mono_since_ns(ft_mono_now(), t->next) >= 0)
            rc = ask(t);
    }
    return rc;
}

/* Threads inherit that signals are blocked: they come by the descriptor alone. */
static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run_on_terminal(const struct ft_args *args)
{
    struct top t = {.args = args, .signals = -1};
    bool complete = true;
    int rc;

    t.fetch = ft_top_fetch_new();
    for (int i = 0; i < FT_TOP_EXPLAIN; i++) {
        t.lists[i] = ft_top_view_new((enum ft_top_kind)i, NULL);
        complete &= t.lists[i] != NULL;
    }
    t.signals = open_signals();
    rc = !t.fetch || !complete ? -ENOMEM : t.signals < 0 ? -EMFILE : ft_top_screen_begin();
    if (rc == 0) {
        rc = go_on(&t);
        ft_top_screen_end();
    }
    ft_top_fetch_free(t.fetch);
    while (t.depth)
        ft_top_view_free(t.opened[--t.depth]);
    for (int i = 0; i < FT_TOP_EXPLAIN; i++)
        ft_top_view_free(t.lists[i]);
    if (t.signals >= 0)
        close(t.signals);
    if (rc == -ENOTTY) {
        fprintf(stderr, "fabrictrace top: nobody knows how to draw on a terminal of kind '%s'\n",
                getenv("TERM") ? getenv("TERM") : "");
        return EX_USAGE;
    }
    if (rc < 0)
        fprintf(stderr, "fabrictrace top: %s\n", strerror(-rc));
    return rc < 0 ? EX_OSERR : EX_OK;
}

int ft_top_run(const struct ft_args *args)
{
    struct ft_answer *answer = NULL;
    struct ft_args first = *args;
    int rc;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return show_once(args);
    /* Without a daemon at the start there is nothing to wait for. */
    first.command = FT_COMMAND_EVENTS;
    rc = ft_fetch(&first, &answer, stderr);
    ft_answer_free(answer);
    return rc ? rc : run_on_terminal(args);
}
