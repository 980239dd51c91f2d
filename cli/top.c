// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <termios.h>
#include <unistd.h>

#include "cli/fetch.h"
#include "cli/show_top.h"

/* Another screen without a cursor, where long lines are cut; and back. */
#define ENTER   "\033[?1049h\033[?25l\033[?7l"
#define LEAVE   "\033[?7h\033[?25h\033[?1049l"
#define HOME    "\033[H"
#define LINE    "\033[K\n"
#define REST    "\033[J"
#define MS_IN_S 1000

/* The terminal while top has it. */
struct terminal {
    struct termios before;
    int signals; /* that end it, or say that its size is another */
    int wakes;   /* can be read when a key or a signal can: a signal is never missed */
};

/* The three answers; those that were got are the caller's also when one failed. */
static int fetch(const struct ft_args *args, int stop_fd, struct ft_answer *answers[3], FILE *err)
{
    static const enum ft_command commands[3] = {FT_COMMAND_IMBALANCE, FT_COMMAND_LINKS,
                                                FT_COMMAND_EVENTS};
    int rc = 0;

    for (int i = 0; rc == 0 && i < 3; i++) {
        struct ft_args one = *args;

        one.command = commands[i];
        one.stop_fd = stop_fd;
        rc = ft_fetch(&one, &answers[i], err);
    }
    return rc;
}

/* A picture, or why there is none, as text to out. The exit status. */
static int draw(const struct ft_args *args, int stop_fd, FILE *out, FILE *err, bool complete)
{
    struct ft_answer *answers[3] = {NULL, NULL, NULL};
    struct ft_screen screen;
    int rc = fetch(args, stop_fd, answers, err);

    if (rc == 0) {
        const struct ft_top top = {
            .imbalance = ft_answer_root(answers[0]),
            .links = ft_answer_root(answers[1]),
            .events = ft_answer_root(answers[2]),
        };

        ft_screen_init(&screen, stdout);
        screen.out = out;
        if (ft_show_top(&screen, &top, complete ? 0 : screen.height) < 0) {
            fprintf(err, "fabrictrace: no memory\n");
            rc = EX_OSERR;
        }
    }
    for (int i = 0; i < 3; i++)
        ft_answer_free(answers[i]);
    return rc;
}

/* In one write, over the picture before. */
static int refresh(const struct ft_args *args, int wakes)
{
    char *text = NULL;
    size_t bytes;
    int rc;
    FILE *memory = open_memstream(&text, &bytes);

    if (!memory)
        return EX_OSERR;
    rc = draw(args, wakes, memory, memory, false);
    if (fclose(memory) != 0) {
        free(text);
        return EX_OSERR;
    }
    /* A key, or another size: the picture before stays until the next. */
    if (rc == FT_FETCH_ENDED) {
        free(text);
        return EX_OK;
    }
    fputs(HOME, stdout);
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        fwrite(line, 1, len, stdout);
        line += len;
        if (*line == '\n' && *++line)
            fputs(LINE, stdout);
    }
    fputs(REST, stdout);
    free(text);
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}

/* Waits for the next picture's time; a key or another size of the terminal is one too. False when
 * it is to end. */
static bool wait_for_next(const struct terminal *t, unsigned interval_s)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = t->signals, .events = POLLIN}};
    struct signalfd_siginfo signal;
    char key;

    if (poll(fds, 2, (int)interval_s * MS_IN_S) <= 0)
        return true;
    if (fds[1].revents &&
        (read(t->signals, &signal, sizeof(signal)) < 0 || signal.ssi_signo != SIGWINCH))
        return false;
    return !fds[0].revents || (read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && key != 'Q');
}

static int set_signals(struct terminal *t)
{
    struct epoll_event event = {.events = EPOLLIN};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    t->signals = signalfd(-1, &set, SFD_CLOEXEC);
    t->wakes = epoll_create1(EPOLL_CLOEXEC);
    if (t->signals < 0 || t->wakes < 0 ||
        epoll_ctl(t->wakes, EPOLL_CTL_ADD, t->signals, &event) < 0 ||
        epoll_ctl(t->wakes, EPOLL_CTL_ADD, STDIN_FILENO, &event) < 0)
        return -errno;
    return 0;
}

/* Keys come one by one and unseen. To be stopped would leave the terminal in this state. */
static int set_keys(struct termios *before)
{
    struct termios keys;

    if (tcgetattr(STDIN_FILENO, before) < 0)
        return -errno;
    keys = *before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;
    return tcsetattr(STDIN_FILENO, TCSANOW, &keys) < 0 ? -errno : 0;
}

static int run_on_terminal(const struct ft_args *args)
{
    struct terminal t = {.signals = -1, .wakes = -1};
    int rc = set_signals(&t);

    if (rc == 0)
        rc = set_keys(&t.before);
    if (rc < 0) {
        fprintf(stderr, "fabrictrace top: the terminal: %s\n", strerror(-rc));
        rc = EX_OSERR;
        goto out;
    }
    fputs(ENTER, stdout);
    do
        rc = refresh(args, t.wakes);
    while (rc == EX_OK && wait_for_next(&t, args->interval_s));
    fputs(LEAVE, stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &t.before);
out:
    if (t.wakes >= 0)
        close(t.wakes);
    if (t.signals >= 0)
        close(t.signals);
    return rc;
}

int ft_top_run(const struct ft_args *args)
{
    struct ft_answer *answers[3] = {NULL, NULL, NULL};
    int rc;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return draw(args, -1, stdout, stderr, true);
    /* Without a daemon at the start there is nothing to wait for. */
    rc = fetch(args, -1, answers, stderr);
    for (int i = 0; i < 3; i++)
        ft_answer_free(answers[i]);
    return rc ? rc : run_on_terminal(args);
}
