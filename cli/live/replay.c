// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/live/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/fetch/fetch.h"
#include "cli/live/children.h"

static int start(struct ft_children *c, const struct ft_args *args, int *child)
{
    /* For a person the usual port, where nobody has it. */
    const char *http_at = args->rest_count ? "127.0.0.1:0" : ft_children_http(c);
    char http[64];
    const char *const words[] = {"--config", "/dev/null",   "--set", http, "--incident",
                                 args->file, "--log-level", NULL,    NULL};
    const char *list[sizeof(words) / sizeof(words[0])];
    const struct ft_child_start how = {
        .program = "fabrictraced", .args = list, .in = -1, .out = -1, .ports = true};

    snprintf(http, sizeof(http), "http=%s", http_at);
    memcpy(list, words, sizeof(words));
    /* What is wrong with the file is said in any case. */
    list[sizeof(words) / sizeof(words[0]) - 2] = args->rest_count ? "warning" : "notice";
    return ft_children_launch(c, "replay", &how, child, stderr);
}

/* Until a signal, or until the daemon ends by itself. */
static int serve(struct ft_children *c, uint16_t port)
{
    printf("Page: http://127.0.0.1:%u/\n", port);
    if (port == FT_CHILDREN_HTTP_PORT)
        printf("In another terminal: fabrictrace top, imbalance, paths, doctor ...\n");
    else
        printf(
            "In another terminal: export FABRICTRACE_ENDPOINT=127.0.0.1:%u; fabrictrace top ...\n",
            port);
    printf("Ctrl-C ends it.\n");
    fflush(stdout);
    for (;;) {
        enum ft_children_news news = ft_children_wait(c, -1, -1);

        if (news == FT_CHILDREN_STOP || news == FT_CHILDREN_ENDED || news == FT_CHILDREN_FAILED)
            return news == FT_CHILDREN_FAILED ? EX_OSERR : EX_OK;
    }
}

/* When what is replayed ends: with the last window that closed; the present where there is none. */
static struct ft_wall end_of(const struct ft_args *args, const char *endpoint)
{
    struct ft_args own = *args;
    struct ft_answer *answer;
    struct ft_wall end = ft_wall_now();
    uint64_t ms;

    own.endpoint = endpoint;
    own.token_file = own.ca = NULL;
    if (ft_fetch_target(&own, "/api/v1/windows?limit=1", &answer, stderr))
        return end;
    if (ft_value_uint(ft_answer_root(answer), "window_end_ms", &ms))
        end.ms = (int64_t)ms;
    ft_answer_free(answer);
    return end;
}

static int run_command(const struct ft_args *args, uint16_t port, ft_replay_run *command)
{
    char **words = calloc((size_t)args->rest_count + 2, sizeof(char *)), endpoint[64],
         self[] = "fabrictrace";
    int rc = EX_OSERR;

    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", port);
    if (words && setenv("FABRICTRACE_ENDPOINT", endpoint, 1) == 0) {
        words[0] = self;
        memcpy(words + 1, args->rest, (size_t)args->rest_count * sizeof(char *));
        rc = command(args->rest_count + 1, words, end_of(args, endpoint));
    }
    free(words);
    return rc;
}

/* A file takes seconds to read: that there is no such command is said before. */
static int check_command(const struct ft_args *args)
{
    char self[] = "fabrictrace", help[] = "--help";
    struct ft_args parsed;
    int rc;

    if (!args->rest_count || args->rest[0][0] == '-')
        return EX_OK;
    rc = ft_args_parse(&parsed, 3, (char *[]){self, args->rest[0], help, NULL}, args->now, stderr);
    ft_args_free(&parsed);
    return rc;
}

static int run(struct ft_children *c, const struct ft_args *args, ft_replay_run *command,
               bool *over)
{
    int child, rc = start(c, args, &child);

    if (rc || !ft_children_await(c, child))
        return rc;
    ft_children_log(c, child, stderr);
    if (!args->rest_count)
        return serve(c, ft_children_port(c, child, "http"));
    *over = true;
    ft_children_unblock(c);
    rc = run_command(args, ft_children_port(c, child, "http"), command);
    ft_children_block(c);
    return rc;
}

int ft_replay_command(const struct ft_args *args, ft_replay_run *command)
{
    struct ft_children *c;
    bool over = false;
    int rc;

    if (access(args->file, R_OK)) {
        fprintf(stderr, "fabrictrace replay: %s: %s\n", args->file, strerror(errno));
        return EX_NOINPUT;
    }
    rc = check_command(args);
    if (rc)
        return rc;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "reading %s ...\n", args->file);
    c = ft_children_new();
    if (!c) {
        fprintf(stderr, "fabrictrace replay: %s\n", strerror(errno));
        return EX_OSERR;
    }
    rc = run(c, args, command, &over);
    /* A daemon that ends by itself is a fault. */
    if (rc == EX_OK && !over && !ft_children_stopped(c))
        rc = ft_children_complain(c, "replay", stderr);
    ft_children_free(c);
    return rc;
}
