// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/fetch/node.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/fetch/fetch.h"

#define TARGET_BYTES_MAX 4096

/* A part: a list of an answer, under another name in that of explain. */
struct part {
    const char *path;  /* below /api/v1/ */
    const char *by;    /* parameter that takes the name; NULL: the list is of all */
    const char *as;    /* its name */
    const char *total; /* name of how many there are; NULL: this is all of them */
    const char *own;   /* of a list of all: member that has to be the name */
};

static const struct part of_host[] = {
    {"hosts", "host", "agents", NULL, NULL},
    {"qps", "host", "queue_pairs", "queue_pairs_total", NULL},
    {"paths", "host", "paths", "paths_total", NULL},
    {"doctor", NULL, "findings", NULL, "host"},
    {0},
};

static const struct part of_switch[] = {
    {"links", "switch", "links", NULL, NULL},
    {"imbalance", NULL, "groups", NULL, "switch"},
    {"paths", "switch", "paths", "paths_total", NULL},
    {"doctor", NULL, "findings", NULL, "switch"},
    {0},
};

static const struct ft_value *find(const struct ft_value *list, const char *name)
{
    for (size_t i = 0; i < ft_value_count(list); i++)
        if (ft_value_is(ft_value_at(list, i), "name", name))
            return ft_value_at(list, i);
    return NULL;
}

static bool has_address(const struct ft_value *host, const struct ft_ip *address)
{
    const struct ft_value *nics = ft_value_get(host, "nics");
    struct ft_ip own;

    for (size_t i = 0; i < ft_value_count(nics); i++) {
        const struct ft_value *list = ft_value_get(ft_value_at(nics, i), "addresses");

        for (size_t k = 0; k < ft_value_count(list); k++) {
            const char *text = ft_value_text(ft_value_at(list, k));

            if (text && ft_ip_parse(text, &own) == 0 && ft_ip_equal(&own, address))
                return true;
        }
    }
    return false;
}

/* The host of this name, or with this address. */
static const struct ft_value *find_host(const struct ft_value *hosts, const char *name)
{
    struct ft_ip address;

    if (ft_ip_parse(name, &address))
        return find(hosts, name);
    for (size_t i = 0; i < ft_value_count(hosts); i++)
        if (has_address(ft_value_at(hosts, i), &address))
            return ft_value_at(hosts, i);
    return NULL;
}

static int no_memory(FILE *err)
{
    fputs("fabrictrace: no memory\n", err);
    return EX_OSERR;
}

static int fetch(const struct ft_args *args, const char *path, const char *by,
                 struct ft_answer **answer, FILE *err)
{
    struct ft_writer target;
    int rc;

    ft_writer_init(&target, TARGET_BYTES_MAX);
    ft_write_fmt(&target, "/api/v1/%s%s%s", path, by ? "?" : "", by ? by : "");
    if (by) {
        ft_write_u8(&target, '=');
        ft_fetch_add_text(&target, args->name);
    }
    ft_write_u8(&target, 0);
    if (ft_writer_ok(&target)) {
        rc = ft_fetch_target(args, (const char *)target.bytes, answer, err);
    } else {
        fprintf(err, "fabrictrace: the name is too long\n");
        rc = EX_USAGE;
    }
    ft_writer_free(&target);
    return rc;
}

/* A group is of the switch whose name stands before its slash. */
static bool is_own(const struct part *part, const struct ft_value *record, const char *name)
{
    const char *group = ft_value_str(record, "name");
    const char *slash = group ? strrchr(group, '/') : NULL;

    if (strcmp(part->as, "groups") != 0)
        return ft_value_is(record, part->own, name);
    return ft_value_is(record, "scope", "group") && slash &&
           (size_t)(slash - group) == strlen(name) &&
           strncmp(group, name, (size_t)(slash - group)) == 0;
}

static int keep_own(const struct part *part, const char *name, struct ft_answer *answer)
{
    const struct ft_value *records = ft_value_get(ft_answer_root(answer), "records");
    size_t count = ft_value_count(records);
    bool *keep = calloc(count ? count : 1, sizeof(*keep));

    for (size_t i = 0; keep && i < count; i++)
        keep[i] = is_own(part, ft_value_at(records, i), name);
    if (keep)
        ft_answer_keep(answer, keep);
    free(keep);
    return keep ? 0 : EX_OSERR;
}

static int add(const struct ft_args *args, const struct part *part, struct ft_answer *to, FILE *err)
{
    const struct ft_value *root;
    struct ft_answer *answer;
    int rc = fetch(args, part->path, part->by, &answer, err);

    if (rc)
        return rc;
    root = ft_answer_root(answer);
    if ((part->own && keep_own(part, args->name, answer)) ||
        ft_answer_put(to, part->as, ft_value_get(root, "records")) ||
        (part->total && ft_answer_put(to, part->total, ft_value_get(root, "total"))))
        rc = no_memory(err);
    ft_answer_free(answer);
    return rc;
}

/* The events, with the window that the answer is of, then all else. */
static int put_together(const struct ft_args *args, const char *kind, const struct ft_value *node,
                        struct ft_answer **answer, FILE *err)
{
    bool host = strcmp(kind, "host") == 0;
    struct ft_answer *got;
    int rc = fetch(args, "events", kind, &got, err);

    if (rc)
        return rc;
    if (ft_answer_put(got, kind, node) ||
        ft_answer_put(got, "events", ft_value_get(ft_answer_root(got), "records")))
        rc = no_memory(err);
    ft_answer_put(got, "records", NULL);
    ft_answer_put(got, "total", NULL);
    for (const struct part *part = host ? of_host : of_switch; rc == 0 && part->path; part++)
        rc = add(args, part, got, err);
    if (rc)
        ft_answer_free(got);
    else
        *answer = got;
    return rc;
}

static int fetch_node(const struct ft_args *args, struct ft_answer **answer, FILE *err)
{
    const struct ft_value *host, *sw;
    struct ft_answer *topology;
    struct ft_args named = *args;
    int rc = fetch(args, "topology", NULL, &topology, err);

    if (rc)
        return rc;
    host = find_host(ft_value_get(ft_answer_root(topology), "hosts"), args->name);
    sw = find(ft_value_get(ft_answer_root(topology), "switches"), args->name);
    if (host && ft_value_str(host, "name"))
        named.name = ft_value_str(host, "name");
    if (host || sw)
        rc = put_together(&named, host ? "host" : "switch", host ? host : sw, answer, err);
    else
        rc = FT_EXIT_NOT_FOUND;
    ft_answer_free(topology);
    return rc;
}

int ft_fetch_node(const struct ft_args *args, struct ft_answer **answer, FILE *err)
{
    int rc = ft_fetch(args, answer, err);

    if (rc != FT_EXIT_NOT_FOUND || !args->name)
        return rc;
    if (!args->port)
        rc = fetch_node(args, answer, err);
    if (rc == 0 && !args->json)
        ft_answer_clean(*answer);
    if (rc != FT_EXIT_NOT_FOUND)
        return rc;
    fprintf(err,
            "fabrictrace: fabrictraced at %s knows no %s '%s%s%s'\n"
            "  fabrictrace links lists links and groups, fabrictrace ranks jobs, fabrictrace "
            "topology\n"
            "  hosts and switches; a flow is written 10.0.1.1:49441-10.0.3.1\n",
            args->endpoint, args->port ? "link" : "link, group, job, host or switch", args->name,
            args->port ? "/" : "", args->port ? args->port : "");
    return rc;
}
