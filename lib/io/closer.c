// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/grow.h"

#define STACK_BYTES (128u << 10)
/* Sockets that wait for being closed, before no more connections are accepted. */
#define SOCKETS_MAX 64
/* Descriptors that were sent and are being closed; those of one user. */
#define TAKEN_MAX 8
#define USER_MAX  2
/* Messages of a connection that are looked through before it is left to the thread. */
#define MESSAGES_MAX 16

enum slot_state { SLOT_FREE, SLOT_WAITS, SLOT_CLOSES };

struct slot {
    struct ft_closer *closer;
    int fd;
    uint64_t user;
    enum slot_state state;
};

struct ft_closer {
    pthread_mutex_t lock;
    pthread_t worker;  /* for sockets */
    bool freed, apart; /* apart: the worker has descriptors of its own */
    sem_t begun;
    int queue[2]; /* sockets on their way to the worker, and where it takes them */
    int *held;    /* those for which there is no room on the way */
    size_t held_count, held_size;
    uint64_t sockets; /* all of them, not closed yet */
    uint64_t unwanted;
    struct slot slots[TAKEN_MAX];
    size_t threads; /* of the slots */
};

/* A second copy of a descriptor, in a table of its own. */
struct copy {
    int fd;
    sem_t copied, closed;
};

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem))
        ;
}

/* A table of its own for this thread, with one descriptor of those in the other. */
static bool keep_only(int fd)
{
    /* Where the kernel has no close_range(2), all would stay open. */
    if (syscall(SYS_close_range, ~0U, ~0U, 0) || unshare(CLONE_FILES))
        return false;
    if (fd > 0)
        syscall(SYS_close_range, 0, (unsigned)fd - 1, 0);
    syscall(SYS_close_range, (unsigned)fd + 1, ~0U, 0);
    return true;
}

static void *hold_copy(void *arg)
{
    struct copy *copy = arg;

    keep_only(copy->fd);
    sem_post(&copy->copied);
    wait_for(&copy->closed);
    return NULL;
}

static int start_thread(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    pthread_attr_t attr;
    int err;

    /* Signals are for the loop's thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    err = pthread_create(thread, &attr, run, arg);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}

/* The last copy goes with a thread that ends: the kernel lets no socket linger then, neither this
 * one nor those in its queue, and nobody waits for what it does otherwise. */
static void let_go(int fd)
{
    struct copy copy = {.fd = fd};
    pthread_t holder;
    bool held;

    sem_init(&copy.copied, 0, 0);
    sem_init(&copy.closed, 0, 0);
    held = start_thread(&holder, hold_copy, &copy) == 0;
    if (held)
        wait_for(&copy.copied);
    close(fd);
    if (held) {
        sem_post(&copy.closed);
        pthread_join(holder, NULL);
    }
    sem_destroy(&copy.copied);
    sem_destroy(&copy.closed);
}

/* -1: there will be no more; -2: the kernel could not give it to us. */
static int take_socket(int queue)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message;
    ssize_t n;
    int fd = -1;

    do {
        message =
            (struct msghdr){.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
        n = recvmsg(queue, &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n == 0 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    else if (n == 0 && message.msg_flags & MSG_CTRUNC)
        fd = -2;
    return fd;
}

/* In its table are sockets of ours alone, and nothing that anybody sent: a copy of that table is
 * closed at once, too. */
static void *close_sockets(void *arg)
{
    struct ft_closer *closer = arg;
    int fd, queue = closer->queue[1];

    closer->apart = keep_only(queue);
    sem_post(&closer->begun);
    while ((fd = take_socket(queue)) != -1) {
        /* Who passed it on has it no more once the lock is free. */
        pthread_mutex_lock(&closer->lock);
        pthread_mutex_unlock(&closer->lock);
        if (fd >= 0)
            let_go(fd);
        pthread_mutex_lock(&closer->lock);
        closer->sockets--;
        pthread_mutex_unlock(&closer->lock);
    }
    close(queue);
    return NULL;
}

static void destroy(struct ft_closer *closer)
{
    sem_destroy(&closer->begun);
    pthread_mutex_destroy(&closer->lock);
    free(closer->held);
    free(closer);
}

static void *close_taken(void *arg)
{
    struct slot *slot = arg;
    static const struct linger off = {.l_onoff = 0};
    struct ft_closer *closer = slot->closer;
    bool last;

    setsockopt(slot->fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
    close(slot->fd);
    pthread_mutex_lock(&closer->lock);
    slot->state = SLOT_FREE;
    last = --closer->threads == 0 && closer->freed;
    pthread_mutex_unlock(&closer->lock);
    if (last)
        destroy(closer);
    return NULL;
}

/* The socket is in two tables then, and closed here without anything else. */
static bool pass(struct ft_closer *closer, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

    *rights = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd))};
    memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    if (sendmsg(closer->queue[0], &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return false;
    close(fd);
    return true;
}

/* What had no room on the way, or no thread so far, is tried again with each call. Under the lock.
 */
static void try_again(struct ft_closer *closer)
{
    pthread_t thread;

    while (closer->held_count && pass(closer, closer->held[closer->held_count - 1]))
        closer->held_count--;
    for (size_t i = 0; i < TAKEN_MAX; i++) {
        struct slot *slot = &closer->slots[i];

        if (slot->state != SLOT_WAITS || start_thread(&thread, close_taken, slot))
            continue;
        slot->state = SLOT_CLOSES;
        closer->threads++;
        pthread_detach(thread);
    }
}

static void hand_over(struct ft_closer *closer, int fd)
{
    int *room;

    closer->sockets++;
    if (pass(closer, fd))
        return;
    /* Without memory it stays open. */
    room = ft_grow(closer->held, closer->held_count, &closer->held_size, sizeof(*room));
    if (!room)
        return;
    closer->held = room;
    closer->held[closer->held_count++] = fd;
}

struct ft_closer *ft_closer_new(void)
{
    struct ft_closer *closer = calloc(1, sizeof(*closer));

    if (!closer || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, closer->queue)) {
        free(closer);
        return NULL;
    }
    pthread_mutex_init(&closer->lock, NULL);
    sem_init(&closer->begun, 0, 0);
    for (size_t i = 0; i < TAKEN_MAX; i++)
        closer->slots[i].closer = closer;
    if (start_thread(&closer->worker, close_sockets, closer)) {
        close(closer->queue[0]);
        close(closer->queue[1]);
        destroy(closer);
        return NULL;
    }
    wait_for(&closer->begun);
    if (closer->apart)
        close(closer->queue[1]);
    return closer;
}

void ft_closer_free(struct ft_closer *closer)
{
    bool last;

    if (!closer)
        return;
    pthread_mutex_lock(&closer->lock);
    try_again(closer);
    pthread_mutex_unlock(&closer->lock);
    close(closer->queue[0]);
    pthread_join(closer->worker, NULL);
    pthread_mutex_lock(&closer->lock);
    closer->freed = true;
    last = closer->threads == 0;
    pthread_mutex_unlock(&closer->lock);
    if (last)
        destroy(closer);
}

bool ft_closer_may_accept(struct ft_closer *closer)
{
    bool room;

    pthread_mutex_lock(&closer->lock);
    try_again(closer);
    room = closer->sockets < SOCKETS_MAX;
    pthread_mutex_unlock(&closer->lock);
    return room;
}

bool ft_closer_may_take(struct ft_closer *closer, uint64_t user)
{
    size_t own = 0, used = 0;

    pthread_mutex_lock(&closer->lock);
    try_again(closer);
    for (size_t i = 0; i < TAKEN_MAX; i++) {
        const struct slot *slot = &closer->slots[i];

        used += slot->state != SLOT_FREE;
        own += slot->state != SLOT_FREE && slot->user == user;
    }
    pthread_mutex_unlock(&closer->lock);
    return used < TAKEN_MAX && own < USER_MAX;
}

void ft_closer_take(struct ft_closer *closer, int fd, uint64_t user)
{
    pthread_mutex_lock(&closer->lock);
    for (size_t i = 0; i < TAKEN_MAX; i++) {
        struct slot *slot = &closer->slots[i];

        if (slot->state != SLOT_FREE)
            continue;
        slot->fd = fd;
        slot->user = user;
        slot->state = SLOT_WAITS;
        break;
    }
    try_again(closer);
    pthread_mutex_unlock(&closer->lock);
}

enum waiting { NOTHING_WAITS, PLAIN_WAITS, DESCRIPTORS_WAIT, LOOK_AGAIN };

/* Descriptors stay where they are, and are never the last ones. Each message comes with the ID of
 * its process, which distinguishes an empty one from the end. */
static enum waiting look(int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct msghdr message = {.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};

    /* Other errors, as of a peer that went without having read all, are reported once, before what
     * waits. */
    if (recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT) < 0)
        return errno == EAGAIN || errno == ENOTCONN ? NOTHING_WAITS : LOOK_AGAIN;
    if (message.msg_flags & MSG_CTRUNC)
        return DESCRIPTORS_WAIT;
    return message.msg_controllen ? PLAIN_WAITS : NOTHING_WAITS;
}

/* Nothing can be put into its queue any more, and what is in there are no descriptors: closing it
 * closes nothing else. */
static bool is_empty(int fd)
{
    static const int on = 1;
    uint8_t byte;

    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) || shutdown(fd, SHUT_RD))
        return false;
    for (int i = 0; i < MESSAGES_MAX; i++) {
        enum waiting waiting = look(fd);

        if (waiting == LOOK_AGAIN)
            continue;
        if (waiting != PLAIN_WAITS)
            return waiting == NOTHING_WAITS;
        (void)!recv(fd, &byte, sizeof(byte), MSG_DONTWAIT);
    }
    return false;
}

void ft_closer_hang_up(struct ft_closer *closer, int fd)
{
    int listens = 0;
    socklen_t len = sizeof(listens);

    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len);
    if (!listens && is_empty(fd)) {
        close(fd);
        return;
    }
    pthread_mutex_lock(&closer->lock);
    closer->unwanted += !listens;
    hand_over(closer, fd);
    try_again(closer);
    pthread_mutex_unlock(&closer->lock);
}

ssize_t ft_closer_receive(int fd, uint8_t *bytes, size_t len)
{
    struct msghdr message = {.msg_iovlen = 0};
    ssize_t n = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);

    if (n >= 0 && message.msg_flags & MSG_CTRUNC)
        return -EBADMSG;
    if (n >= 0)
        n = recv(fd, bytes, len, MSG_DONTWAIT);
    return n < 0 ? -errno : n;
}

struct ft_closer_stats ft_closer_stats(struct ft_closer *closer)
{
    struct ft_closer_stats stats;

    pthread_mutex_lock(&closer->lock);
    stats = (struct ft_closer_stats){.unwanted = closer->unwanted, .closing = closer->sockets};
    for (size_t i = 0; i < TAKEN_MAX; i++)
        stats.closing += closer->slots[i].state != SLOT_FREE;
    pthread_mutex_unlock(&closer->lock);
    return stats;
}
