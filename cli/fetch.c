// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/fetch.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>

#include "lib/io/http.h"

#define TARGET_BYTES_MAX 4096
#define ANSWER_BYTES_MAX FT_HTTP_BODY_BYTES_MAX
#define TIMEOUT_NS       30000000000
#define ERROR_BYTES      256

static void add_parameter(struct ft_writer *w, char *separator, const char *name, const char *value)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    if (!value)
        return;
    ft_write_fmt(w, "%c%s=", *separator, name);
    *separator = '&';
    for (; *value; value++) {
        if (strchr(plain, *value))
            ft_write_u8(w, (uint8_t)*value);
        else
            ft_write_fmt(w, "%%%02X", (unsigned char)*value);
    }
}

static void build_target(struct ft_writer *w, const struct ft_args *args)
{
    static const char *const paths[FT_COMMANDS] = {
        [FT_COMMAND_PATHS] = "paths",
        [FT_COMMAND_LINKS] = "links",
        [FT_COMMAND_IMBALANCE] = "imbalance",
        [FT_COMMAND_COLLISIONS] = "events",
        [FT_COMMAND_EXPLAIN] = "explain",
        [FT_COMMAND_TOPOLOGY] = "topology",
        [FT_COMMAND_MATRIX] = "matrix",
        [FT_COMMAND_RANKS] = "ranks",
        [FT_COMMAND_DOCTOR] = "doctor",
        [FT_COMMAND_EVENTS] = "events",
        [FT_COMMAND_QPS] = "qps",
    };
    char flow[FT_TUPLE_TEXT_BYTES], limit[24], separator = '?';

    ft_write_fmt(w, "/api/v1/%s", paths[args->command]);
    if (args->command == FT_COMMAND_COLLISIONS)
        add_parameter(w, &separator, "kind", "collision");
    add_parameter(w, &separator, "kind", args->kind);
    if (args->has_flow) {
        ft_tuple_format(&args->flow, flow);
        add_parameter(w, &separator, "flow", flow);
    }
    add_parameter(w, &separator, "state", args->state);
    add_parameter(w, &separator, "host", args->host);
    add_parameter(w, &separator, "group", args->group);
    add_parameter(w, &separator, "comm", args->comm);
    add_parameter(w, &separator, "op", args->op);
    if (args->limit) {
        snprintf(limit, sizeof(limit), "%llu", (unsigned long long)args->limit);
        add_parameter(w, &separator, "limit", limit);
    }
    ft_write_u8(w, 0);
}

/* The daemon's sentence, on one line. */
static void put_body(FILE *err, const struct ft_writer *body)
{
    size_t n = body->len < 512 ? body->len : 512;

    for (size_t i = 0; i < n; i++)
        fputc(body->bytes[i] < 0x20 || body->bytes[i] >= 0x7f ? ' ' : body->bytes[i], err);
    fputc('\n', err);
}

static int refused(const struct ft_args *args, int status, const struct ft_writer *body, FILE *err)
{
    char flow[FT_TUPLE_TEXT_BYTES];

    if (status == 404 && args->command == FT_COMMAND_EXPLAIN) {
        ft_tuple_format(&args->flow, flow);
        fprintf(err,
                "fabrictrace: fabrictraced at %s does not know the flow %s\n"
                "  Nobody has seen it lately: no switch has sampled it and no agent reports it.\n"
                "  fabrictrace paths --host HOST lists the flows of a host.\n",
                args->endpoint, flow);
        return FT_EXIT_NOT_FOUND;
    }
    fprintf(err, "fabrictrace: fabrictraced at %s answers %d: ", args->endpoint, status);
    put_body(err, body);
    if (status == 400)
        return EX_USAGE;
    return status == 503 ? EX_UNAVAILABLE : EX_PROTOCOL;
}

/* why names the endpoint. */
static int unreachable(int rc, const char *why, FILE *err)
{
    switch (rc) {
    case -EINVAL:
        fprintf(err, "fabrictrace: %s\n  Write the endpoint as HOST:PORT.\n", why);
        return EX_USAGE;
    case -ENOMEM:
    case -EMSGSIZE:
        fprintf(err, "fabrictrace: %s\n", why);
        return EX_OSERR;
    case -EBADMSG:
        fprintf(err, "fabrictrace: what answers is no fabrictraced: %s\n", why);
        return EX_PROTOCOL;
    default:
        fprintf(err,
                "fabrictrace: fabrictraced does not answer: %s\n"
                "  Does it run here?  systemctl status fabrictraced\n"
                "  Does it run elsewhere?  fabrictrace --endpoint HOST:PORT, or "
                "FABRICTRACE_ENDPOINT\n",
                why);
        return EX_UNAVAILABLE;
    }
}

int ft_fetch(const struct ft_args *args, struct ft_answer **answer, FILE *err)
{
    char error[ERROR_BYTES] = "";
    struct ft_writer target, body;
    struct ft_answer *got;
    int rc;

    ft_writer_init(&target, TARGET_BYTES_MAX);
    ft_writer_init(&body, ANSWER_BYTES_MAX);
    build_target(&target, args);
    if (!ft_writer_ok(&target)) {
        fprintf(err, "fabrictrace: the options are too long\n");
        rc = EX_USAGE;
        goto out;
    }
    rc = ft_http_get(args->endpoint, (const char *)target.bytes, TIMEOUT_NS, &body, error,
                     sizeof(error));
    if (rc != 200) {
        rc = rc < 0 ? unreachable(rc, error, err) : refused(args, rc, &body, err);
        goto out;
    }
    got = ft_answer_parse((const char *)body.bytes, body.len, error, sizeof(error));
    if (!got) {
        fprintf(err, "fabrictrace: what answers is no fabrictraced: http://%s: %s\n",
                args->endpoint, error);
        rc = EX_PROTOCOL;
        goto out;
    }
    *answer = got;
    rc = 0;
out:
    ft_writer_free(&target);
    ft_writer_free(&body);
    return rc;
}
