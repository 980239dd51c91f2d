// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/plans/plan_reader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/io/loop.h"
#include "proto/plan_name.h"

/* Between begin and end fd, job and read are the thread's. */
struct ft_plan_reader {
    void (*done)(void *arg, const struct ft_plan_read *read);
    void *arg;
    struct ft_watch *watch;
    int ended; /* eventfd that the thread writes to */
    bool busy;
    pthread_t thread;
    int fd;
    char job[FT_PLAN_JOB_BYTES];
    struct ft_plan_read read;
};

static void *run(void *arg)
{
    struct ft_plan_reader *r = arg;

    r->read.rc =
        ft_plan_file_read(r->fd, r->job, &r->read.file, r->read.error, sizeof(r->read.error));
    (void)eventfd_write(r->ended, 1);
    return NULL;
}

static void on_end(void *arg)
{
    struct ft_plan_reader *r = arg;
    struct ft_plan_read read;
    eventfd_t count;

    if (eventfd_read(r->ended, &count) || !r->busy)
        return;
    pthread_join(r->thread, NULL);
    r->busy = false;
    read = r->read;
    r->done(r->arg, &read);
}

struct ft_plan_reader *ft_plan_reader_new(struct ft_loop *loop,
                                          void (*done)(void *arg, const struct ft_plan_read *read),
                                          void *arg)
{
    struct ft_plan_reader *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->done = done;
    r->arg = arg;
    r->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->watch =
        r->ended < 0 ? NULL : ft_watch_stage(ft_watch_fd(loop, r->ended, on_end, r), "plans");
    if (r->watch)
        return r;
    if (r->ended >= 0)
        close(r->ended);
    free(r);
    return NULL;
}

void ft_plan_reader_free(struct ft_plan_reader *r)
{
    if (!r)
        return;
    if (r->busy) {
        pthread_join(r->thread, NULL);
        if (r->read.rc == 0)
            ft_plan_file_clear(&r->read.file);
    }
    ft_watch_free(r->watch);
    close(r->ended);
    free(r);
}

bool ft_plan_reader_busy(const struct ft_plan_reader *r)
{
    return r->busy;
}

int ft_plan_reader_begin(struct ft_plan_reader *r, int fd, const char *job)
{
    sigset_t all, before;
    int err;

    r->fd = fd;
    r->read = (struct ft_plan_read){.rc = 0};
    snprintf(r->job, sizeof(r->job), "%s", job);
    /* Signals are for the loop's thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(&r->thread, NULL, run, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    r->busy = err == 0;
    if (err)
        close(fd);
    return -err;
}
