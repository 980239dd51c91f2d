// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/endpoint.h"

#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* A host name's look-up, by the system's resolver, which blocks: so in a thread of its own. Shared
 * by the thread and the loop; the one that lets go last frees it. */
struct lookup {
    atomic_int holders;
    int finished; /* eventfd: result and list are set once it can be read */
    char host[FT_HOST_BYTES];
    char port[8];
    int result;
    struct addrinfo *list;
};

struct ft_connect {
    struct ft_loop *loop;
    int64_t timeout_ns;
    void (*done)(void *arg, int fd, const char *reason);
    void *arg;
    struct lookup *lookup;
    struct ft_watch *looked_up;
    struct ft_watch *start;
    const struct addrinfo *next; /* in lookup's list */
    struct event *writable;
    int fd;
    int last_error;
};

static void try_next(struct ft_connect *connect);

static void lookup_release(struct lookup *lookup)
{
    if (!lookup || atomic_fetch_sub(&lookup->holders, 1) != 1)
        return;
    if (lookup->list)
        freeaddrinfo(lookup->list);
    close(lookup->finished);
    free(lookup);
}

static void look_up(struct lookup *lookup, int flags)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};

    lookup->result = getaddrinfo(lookup->host, lookup->port, &hints, &lookup->list);
}

static void *run_lookup(void *arg)
{
    struct lookup *lookup = arg;

    look_up(lookup, 0);
    eventfd_write(lookup->finished, 1);
    lookup_release(lookup);
    return NULL;
}

static void try_ended(struct ft_connect *connect, int err)
{
    int fd = connect->fd;

    if (connect->writable)
        event_free(connect->writable);
    connect->writable = NULL;
    connect->fd = -1;
    if (err == 0) {
        connect->done(connect->arg, fd, NULL);
        return;
    }
    connect->last_error = err;
    close(fd);
    try_next(connect);
}

static void handle_writable(evutil_socket_t fd, short what, void *arg)
{
    struct ft_loop *loop = ((struct ft_connect *)arg)->loop;
    struct ft_mono start = ft_mono_now();
    int err = 0;
    socklen_t len = sizeof(err);

    if (what & EV_TIMEOUT)
        err = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        err = errno;
    try_ended(arg, err);
    ft_loop_step(loop, NULL, start);
}

static void wait_writable(struct ft_connect *connect)
{
    struct timeval patience = {.tv_sec = connect->timeout_ns / 1000000000,
                               .tv_usec = connect->timeout_ns % 1000000000 / 1000};

    connect->writable =
        event_new(ft_loop_base(connect->loop), connect->fd, EV_WRITE, handle_writable, connect);
    if (!connect->writable || event_add(connect->writable, &patience) < 0)
        try_ended(connect, ENOMEM);
}

static int connect_socket(int fd, const struct addrinfo *info)
{
    return connect(fd, info->ai_addr, info->ai_addrlen);
}

static void try_next(struct ft_connect *connect)
{
    const struct addrinfo *info = connect->next;

    if (!info) {
        connect->done(connect->arg, -connect->last_error, strerror(connect->last_error));
        return;
    }
    connect->next = info->ai_next;
    connect->fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect->fd < 0) {
        connect->last_error = errno;
        try_next(connect);
        return;
    }
    if (connect_socket(connect->fd, info) == 0 || errno == EINPROGRESS)
        wait_writable(connect);
    else
        try_ended(connect, errno);
}

static void handle_lookup(void *arg)
{
    struct ft_connect *connect = arg;
    struct lookup *lookup = connect->lookup;
    char reason[160];

    ft_watch_free(connect->looked_up);
    connect->looked_up = NULL;
    if (lookup->result) {
        snprintf(reason, sizeof(reason), "host name not found: %s", gai_strerror(lookup->result));
        connect->done(connect->arg, -EHOSTUNREACH, reason);
        return;
    }
    connect->next = lookup->list;
    connect->last_error = EADDRNOTAVAIL;
    try_next(connect);
}

static int start_thread(struct lookup *lookup)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    int err;

    /* Signals are for the loop's thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add(&lookup->holders, 1);
    err = pthread_create(&thread, &attr, run_lookup, lookup);
    if (err)
        atomic_fetch_sub(&lookup->holders, 1);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}

static void begin(void *arg)
{
    struct ft_connect *connect = arg;
    int err;

    look_up(connect->lookup, AI_NUMERICHOST);
    if (connect->lookup->result != EAI_NONAME) {
        handle_lookup(connect);
        return;
    }
    connect->looked_up =
        ft_watch_fd(connect->loop, connect->lookup->finished, handle_lookup, connect);
    err = connect->looked_up ? start_thread(connect->lookup) : -ENOMEM;
    if (err < 0)
        connect->done(connect->arg, err, strerror(-err));
}

struct ft_connect *ft_connect_new(struct ft_loop *loop, const char *host, uint16_t port,
                                  int64_t timeout_ns,
                                  void (*done)(void *arg, int fd, const char *reason), void *arg)
{
    struct ft_connect *connect = calloc(1, sizeof(*connect));
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    int finished = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (!connect || !lookup || finished < 0) {
        free(connect);
        free(lookup);
        if (finished >= 0)
            close(finished);
        return NULL;
    }
    atomic_init(&lookup->holders, 1);
    lookup->finished = finished;
    snprintf(lookup->host, sizeof(lookup->host), "%s", host);
    snprintf(lookup->port, sizeof(lookup->port), "%u", port);
    *connect = (struct ft_connect){
        .loop = loop,
        .timeout_ns = timeout_ns,
        .done = done,
        .arg = arg,
        .lookup = lookup,
        .fd = -1,
    };
    connect->start = ft_watch_once(loop, begin, connect);
    if (!connect->start) {
        ft_connect_free(connect);
        return NULL;
    }
    /* Not from here, where the caller has no pointer yet. */
    ft_watch_once_arm(connect->start, 0);
    return connect;
}

void ft_connect_free(struct ft_connect *connect)
{
    if (!connect)
        return;
    ft_watch_free(connect->start);
    ft_watch_free(connect->looked_up);
    if (connect->writable)
        event_free(connect->writable);
    if (connect->fd >= 0)
        close(connect->fd);
    lookup_release(connect->lookup);
    free(connect);
}
