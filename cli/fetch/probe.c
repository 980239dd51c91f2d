// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/fetch/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/fetch/fetch.h"
#include "cli/output/text.h"
#include "cli/show/show.h"
#include "proto/probe_request.h"

#define SOCKET      FT_RUNSTATEDIR "/probe.sock"
#define REPLY_BYTES 65536
/* Sixteen flows before it, each of three rounds. */
#define WAIT_S      120
#define ERROR_BYTES 256

static int complain(const char *subject, const char *what, int err)
{
    fprintf(stderr, "fabrictrace probe: %s: %s%s%s\n", subject, what, err ? ": " : "",
            err ? strerror(err) : "");
    return EX_UNAVAILABLE;
}

/* A flow that bears its path is known by the address that is left at its end: by that a packet may
 * go another way, and say nothing of the flow. */
static int refuse_source_routed(const struct ft_value *path)
{
    char flow[FT_TUPLE_TEXT_BYTES];

    if (!ft_value_true(path, "source_routed"))
        return EX_OK;
    return complain(ft_text_flow(flow, ft_value_get(path, "flow")),
                    "its address bears its path, which a probe could not take", 0);
}

/* From the daemon's answer about the flow. */
static void fill(struct ft_probe_request *request, const struct ft_args *args,
                 const struct ft_value *path)
{
    uint64_t switches = 0, qp = 0;

    if (!ft_value_uint(path, "switches", &switches) && ft_value_is(path, "state", "resolved"))
        switches = ft_value_count(ft_value_get(path, "hops"));
    ft_value_uint(ft_value_get(path, "qp"), "remote", &qp);
    *request = (struct ft_probe_request){
        .tuple = args->flow,
        .dscp = (uint8_t)args->dscp,
        .dst_qp = (uint32_t)(args->has_dst_qp ? args->dst_qp : qp),
        .switches = (uint32_t)switches,
    };
}

static int open_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {.tv_sec = WAIT_S};
    int fd, err;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
        err = errno;
        close(fd);
        return -err;
    }
    return fd;
}

/* Sends the request, and waits for the agent's record. */
static int ask_agent(const char *path, const struct ft_probe_request *request,
                     struct ft_answer **answer)
{
    static char reply[REPLY_BYTES];
    char error[ERROR_BYTES];
    struct ft_writer w;
    ssize_t n = -1;
    int fd = open_socket(path), rc;

    if (fd < 0)
        return complain(path, "the agent cannot be asked; it listens where probe.socket is set",
                        -fd);
    ft_writer_init(&w, FT_PROBE_REQUEST_BYTES);
    ft_probe_request_write(&w, request);
    if (ft_writer_ok(&w) && send(fd, w.bytes, w.len, MSG_NOSIGNAL) == (ssize_t)w.len)
        n = recv(fd, reply, sizeof(reply), 0);
    rc = n < 0 ? errno : 0;
    ft_writer_free(&w);
    close(fd);
    if (n <= 0)
        return complain(path, "the agent did not answer; root and its own user may ask", rc);
    *answer = ft_answer_parse(reply, (size_t)n, error, sizeof(error));
    if (!*answer)
        return complain(path, error, 0);
    ft_answer_clean(*answer);
    return EX_OK;
}

static bool any_answered(const struct ft_value *record)
{
    const struct ft_value *answers = ft_value_get(record, "answers");

    for (size_t i = 0; i < ft_value_count(answers); i++)
        if (ft_value_str(ft_value_at(answers, i), "address"))
            return true;
    return false;
}

static int show(const struct ft_args *args, const struct ft_value *record)
{
    struct ft_answer *topology = NULL;
    struct ft_screen screen;
    int rc;

    if (args->json)
        return ft_show_json(stdout, record, true);
    ft_screen_init(&screen, stdout);
    rc = ft_fetch_target(args, "/api/v1/topology", &topology, stderr);
    if (rc == EX_OK)
        rc = ft_show_probe(&screen, record, ft_answer_root(topology));
    ft_answer_free(topology);
    return rc;
}

int ft_probe_command(const struct ft_args *args)
{
    const char *path = args->socket ? args->socket : SOCKET;
    struct ft_answer *known = NULL, *answer = NULL;
    const struct ft_value *flow = NULL;
    struct ft_probe_request request;
    const char *refused;
    int rc = ft_fetch(args, &known, stderr);

    if (rc == EX_OK) {
        flow = ft_value_at(ft_value_get(ft_answer_root(known), "records"), 0);
        rc = refuse_source_routed(flow);
    }
    if (rc == EX_OK) {
        fill(&request, args, flow);
        rc = ask_agent(path, &request, &answer);
    }
    if (rc == EX_OK) {
        refused = ft_value_str(ft_answer_root(answer), "refused");
        if (refused)
            rc = complain(path, refused, 0);
        else if (show(args, ft_answer_root(answer)) < 0)
            rc = EX_OSERR;
        else
            rc = any_answered(ft_answer_root(answer)) ? EX_OK : FT_EXIT_NOT_FOUND;
    }
    ft_answer_free(answer);
    ft_answer_free(known);
    return rc;
}
