// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/top/top_fetch.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/fetch/fetch.h"
#include "cli/fetch/node.h"

struct ft_top_fetch {
    pthread_t thread;
    bool in_flight;
    int over, stop; /* eventfds: it is over; it shall end */
    struct ft_args args;
    enum ft_command commands[FT_TOP_ANSWERS];
    size_t count;
    struct ft_top_result result; /* the thread's until it is over */
};

void ft_top_result_free(struct ft_top_result *result)
{
    for (size_t i = 0; i < FT_TOP_ANSWERS; i++)
        ft_answer_free(result->answers[i]);
    free(result->error);
    *result = (struct ft_top_result){.rc = 0};
}

struct ft_top_fetch *ft_top_fetch_new(void)
{
    struct ft_top_fetch *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->over = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    f->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (f->over >= 0 && f->stop >= 0)
        return f;
    ft_top_fetch_free(f);
    return NULL;
}

void ft_top_fetch_free(struct ft_top_fetch *f)
{
    if (!f)
        return;
    ft_top_fetch_stop(f);
    if (f->over >= 0)
        close(f->over);
    if (f->stop >= 0)
        close(f->stop);
    free(f);
}

/* Thread: its own. */
static void *run(void *arg)
{
    struct ft_top_fetch *f = arg;
    const uint64_t one = 1;
    size_t bytes;
    FILE *err = open_memstream(&f->result.error, &bytes);

    f->result.rc = err ? EX_OK : EX_OSERR;
    for (size_t i = 0; f->result.rc == EX_OK && i < f->count; i++) {
        struct ft_args one_of = f->args;

        one_of.command = f->commands[i];
        one_of.stop_fd = f->stop;
        f->result.rc = ft_fetch_node(&one_of, &f->result.answers[i], err);
    }
    if (err && fclose(err) != 0)
        f->result.rc = EX_OSERR;
    while (write(f->over, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    return NULL;
}

int ft_top_fetch_begin(struct ft_top_fetch *f, const struct ft_args *args,
                       const enum ft_command *commands, size_t count)
{
    int rc;

    ft_top_fetch_stop(f);
    f->args = *args;
    f->count = count < FT_TOP_ANSWERS ? count : FT_TOP_ANSWERS;
    memcpy(f->commands, commands, f->count * sizeof(*commands));
    f->result = (struct ft_top_result){.rc = 0};
    rc = pthread_create(&f->thread, NULL, run, f);
    f->in_flight = rc == 0;
    return -rc;
}

static void clear(int fd)
{
    uint64_t count;

    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

void ft_top_fetch_stop(struct ft_top_fetch *f)
{
    const uint64_t one = 1;
    struct ft_top_result unwanted;

    if (!f->in_flight)
        return;
    while (write(f->stop, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    pthread_join(f->thread, NULL);
    f->in_flight = false;
    clear(f->stop);
    clear(f->over);
    unwanted = f->result;
    ft_top_result_free(&unwanted);
}

bool ft_top_fetch_is_in_flight(const struct ft_top_fetch *f)
{
    return f->in_flight;
}

int ft_top_fetch_fd(const struct ft_top_fetch *f)
{
    return f->over;
}

bool ft_top_fetch_take(struct ft_top_fetch *f, struct ft_top_result *result)
{
    uint64_t count;

    if (!f->in_flight || read(f->over, &count, sizeof(count)) < 0)
        return false;
    pthread_join(f->thread, NULL);
    f->in_flight = false;
    *result = f->result;
    f->result = (struct ft_top_result){.rc = 0};
    return true;
}
