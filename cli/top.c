// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static volatile sig_atomic_t ended;

static void on_end(int signal)
{
    (void)signal;
    ended = 1;
}

static void on_resize(int signal)
{
    (void)signal; /* it ends the waiting, and the next picture has the new size */
}

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
static int refresh(const struct ft_args *args)
{
    char *text = NULL;
    size_t bytes;
    int rc;
    FILE *memory = open_memstream(&text, &bytes);

    if (!memory)
        return EX_OSERR;
    rc = draw(args, STDIN_FILENO, memory, memory, false);
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

/* Waits for the next picture's time; a key or another size of the terminal is one too. */
static void wait_for_next(unsigned interval_s)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;

    if (poll(&keys, 1, (int)interval_s * MS_IN_S) <= 0)
        return;
    if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
        ended = 1;
}

static void set_signals(void)
{
    struct sigaction end = {.sa_handler = on_end}, resize = {.sa_handler = on_resize};

    sigemptyset(&end.sa_mask);
    sigemptyset(&resize.sa_mask);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGWINCH, &resize, NULL);
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
    struct termios before;
    int rc = set_keys(&before);

    if (rc < 0) {
        fprintf(stderr, "fabrictrace top: the terminal: %s\n", strerror(-rc));
        return EX_OSERR;
    }
    set_signals();
    fputs(ENTER, stdout);
    for (rc = EX_OK; rc == EX_OK && !ended;) {
        rc = refresh(args);
        if (rc == EX_OK && !ended)
            wait_for_next(args->interval_s);
    }
    fputs(LEAVE, stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
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
