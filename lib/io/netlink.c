// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* The kernel answers at once; a socket that stays mute is given up. */
#define ANSWER_S      5
#define REQUEST_BYTES 256
/* RDMA dumps come in messages of up to 8 KiB, other families use up to 32 KiB. */
#define BUFFER_BYTES 65536
/* A notice fits into one page (NLMSG_DEFAULT_SIZE). */
#define NOTICE_BYTES 8192
/* Notices read before the loop looks at other work. */
#define NOTICES_MAX 64

struct ft_netlink {
    struct mnl_socket *socket;
    uint32_t sequence;
    uint8_t buffer[BUFFER_BYTES];
};

struct answer {
    ft_netlink_message message;
    void *arg;
    bool interrupted;
};

int ft_netlink_new(int protocol, struct ft_netlink **netlink)
{
    const struct timeval limit = {.tv_sec = ANSWER_S};
    struct ft_netlink *n = calloc(1, sizeof(*n));
    int err;

    if (!n)
        return -ENOMEM;
    n->socket = mnl_socket_open2(protocol, SOCK_CLOEXEC);
    if (!n->socket || mnl_socket_bind(n->socket, 0, MNL_SOCKET_AUTOPID) ||
        setsockopt(mnl_socket_get_fd(n->socket), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit))) {
        err = errno;
        ft_netlink_free(n);
        return -err;
    }
    *netlink = n;
    return 0;
}

void ft_netlink_free(struct ft_netlink *n)
{
    if (!n)
        return;
    if (n->socket)
        mnl_socket_close(n->socket);
    free(n);
}

static int on_message(const struct nlmsghdr *header, void *data)
{
    struct answer *answer = data;

    if (header->nlmsg_flags & NLM_F_DUMP_INTR)
        answer->interrupted = true;
    answer->message(answer->arg, mnl_nlmsg_get_payload(header), mnl_nlmsg_get_payload_len(header));
    /* Only a dump has an end of its own. */
    return header->nlmsg_flags & NLM_F_MULTI ? MNL_CB_OK : MNL_CB_STOP;
}

static int receive(struct ft_netlink *n, struct answer *answer)
{
    unsigned port = mnl_socket_get_portid(n->socket);
    int rc;

    do {
        ssize_t len = mnl_socket_recvfrom(n->socket, n->buffer, sizeof(n->buffer));

        if (len < 0)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        rc = mnl_cb_run(n->buffer, (size_t)len, n->sequence, port, on_message, answer);
        /* What is left of a request that was given up. */
        if (rc < 0 && errno == EPROTO)
            rc = MNL_CB_OK;
    } while (rc == MNL_CB_OK);
    if (rc < 0)
        return -errno;
    return answer->interrupted ? -EINTR : 0;
}

int ft_netlink_request(struct ft_netlink *n, uint16_t type, bool dump, const void *attributes,
                       size_t attribute_bytes, ft_netlink_message message, void *arg)
{
    uint8_t room[REQUEST_BYTES] __attribute__((aligned(4)));
    struct answer answer = {.message = message, .arg = arg};
    struct nlmsghdr *header = mnl_nlmsg_put_header(room);

    if (attribute_bytes > sizeof(room) - MNL_NLMSG_HDRLEN)
        return -EMSGSIZE;
    header->nlmsg_type = type;
    header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | (dump ? NLM_F_DUMP : 0));
    header->nlmsg_seq = ++n->sequence;
    if (attribute_bytes > 0)
        memcpy(mnl_nlmsg_put_extra_header(header, attribute_bytes), attributes, attribute_bytes);
    if (mnl_socket_sendto(n->socket, header, header->nlmsg_len) < 0)
        return -errno;
    return receive(n, &answer);
}

struct ft_netlink_listener {
    struct ft_netlink_listener_config config;
    struct mnl_socket *socket;
    struct ft_watch *watch;
    uint8_t buffer[NOTICE_BYTES] __attribute__((aligned(4)));
};

static int on_notice(const struct nlmsghdr *header, void *data)
{
    struct ft_netlink_listener *l = data;

    l->config.message(l->config.arg, header->nlmsg_type, mnl_nlmsg_get_payload(header),
                      mnl_nlmsg_get_payload_len(header));
    return MNL_CB_OK;
}

static void take_notices(void *arg)
{
    struct ft_netlink_listener *l = arg;

    for (int i = 0; i < NOTICES_MAX; i++) {
        struct sockaddr_nl from = {0};
        socklen_t from_bytes = sizeof(from);
        ssize_t len = recvfrom(mnl_socket_get_fd(l->socket), l->buffer, sizeof(l->buffer),
                               MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from, &from_bytes);

        if (len < 0 && errno == ENOBUFS) {
            l->config.lost(l->config.arg);
            continue;
        }
        if (len < 0)
            return;
        /* The kernel alone has the number 0. */
        if (from.nl_pid != 0)
            continue;
        if ((size_t)len > sizeof(l->buffer))
            l->config.lost(l->config.arg);
        else
            mnl_cb_run(l->buffer, (size_t)len, 0, 0, on_notice, l);
    }
}

int ft_netlink_listen(struct ft_loop *loop, const struct ft_netlink_listener_config *config,
                      struct ft_netlink_listener **listener)
{
    struct ft_netlink_listener *l = calloc(1, sizeof(*l));
    int group = (int)config->group, err;

    if (!l)
        return -ENOMEM;
    l->config = *config;
    l->socket = mnl_socket_open2(config->protocol, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (!l->socket || mnl_socket_bind(l->socket, 0, MNL_SOCKET_AUTOPID) ||
        mnl_socket_setsockopt(l->socket, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group))) {
        /* netlink(7): a group beyond the protocol's. */
        err = errno == EINVAL ? ENOENT : errno;
        ft_netlink_listener_free(l);
        return -err;
    }
    l->watch =
        ft_watch_stage(ft_watch_fd(loop, mnl_socket_get_fd(l->socket), take_notices, l), "rdma");
    if (!l->watch) {
        ft_netlink_listener_free(l);
        return -ENOMEM;
    }
    *listener = l;
    return 0;
}

void ft_netlink_listener_free(struct ft_netlink_listener *l)
{
    if (!l)
        return;
    ft_watch_free(l->watch);
    if (l->socket)
        mnl_socket_close(l->socket);
    free(l);
}
