// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/inputs/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/output/safe.h"
#include "lib/files/topology_file.h"

/* The name of the command, for complaints. */
static const char *command_of(const struct ft_args *args)
{
    return args->command == FT_COMMAND_PLAN ? "plan" : "whatif";
}

void ft_inputs_complain(FILE *err, const char *command, const struct ft_diag *diag)
{
    const char *text;
    size_t i;

    for (i = 0; (text = ft_diag_text(diag, i)); i++) {
        char *copy = strdup(text);

        if (copy)
            ft_safe_text(copy);
        fprintf(err, "%s\n", copy ? copy : "no memory");
        free(copy);
    }
    if (ft_diag_count(diag) > i)
        fprintf(err, "fabrictrace %s: and %zu more\n", command, ft_diag_count(diag) - i);
}

void ft_inputs_progress(void *arg, uint32_t done, uint32_t of)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%s: %u of %u flows%s", (const char *)arg, done, of,
                done == of ? "\r\x1b[K" : "");
}

static int load_topology(const char *file, struct ft_diag *diag, struct ft_topology **topology)
{
    if (strcmp(file, "-") != 0 && access(file, R_OK) < 0) {
        ft_diag_add(diag, file, 0, "%s", strerror(errno));
        return EX_NOINPUT;
    }
    *topology = ft_topology_file_load(file, diag);
    return *topology ? 0 : EX_DATAERR;
}

static int load_flows(const char *file, const struct ft_topology *t, struct ft_diag *diag,
                      struct ft_flow_list *flows)
{
    int rc = ft_flows_load(file, t, diag, flows);

    if (rc == -EINVAL && ft_diag_count(diag) > 0)
        return EX_DATAERR;
    if (rc)
        ft_diag_add(diag, file, 0, "%s", strerror(-rc));
    return rc == 0 ? 0 : rc == -ENOMEM ? EX_OSERR : EX_NOINPUT;
}

static void fail_port(const struct ft_topology *t, uint32_t port, bool *dead)
{
    uint32_t peer = ft_topology_port(t, port)->peer;

    dead[port] = true;
    if (peer != FT_NONE)
        dead[peer] = true;
}

uint32_t ft_inputs_port(const struct ft_topology *t, char *name)
{
    uint32_t port = FT_NONE;

    for (char *slash = strchr(name, '/'); slash && port == FT_NONE;
         slash = strchr(slash + 1, '/')) {
        uint32_t id;

        *slash = '\0';
        id = ft_topology_find_switch(t, name);
        if (id != FT_NONE)
            port = ft_topology_find_port(t, id, slash + 1);
        *slash = '/';
    }
    return port;
}

/* A switch, or a port of one. */
static bool fail_name(const struct ft_topology *t, char *name, bool *dead)
{
    uint32_t id = ft_topology_find_switch(t, name), port;

    if (id != FT_NONE) {
        const struct ft_switch *w = ft_topology_switch(t, id);

        for (uint32_t i = 0; i < w->port_count; i++)
            fail_port(t, w->ports[i], dead);
        return true;
    }
    port = ft_inputs_port(t, name);
    if (port != FT_NONE)
        fail_port(t, port, dead);
    return port != FT_NONE;
}

static int mark_failed(const char *names, const struct ft_topology *t, struct ft_diag *diag,
                       bool **dead)
{
    char *list = strdup(names), *rest = list, *name;
    int rc = 0;

    *dead = calloc((size_t)ft_topology_ports(t) + 1, sizeof(**dead));
    if (!list || !*dead)
        rc = EX_OSERR;
    while (rc != EX_OSERR && (name = strsep(&rest, ","))) {
        if (fail_name(t, name, *dead))
            continue;
        ft_diag_add(diag, NULL, 0,
                    "--failed: '%s' is not a switch of the topology, nor a link of one", name);
        rc = EX_DATAERR;
    }
    free(list);
    return rc;
}

int ft_inputs_failed(const struct ft_args *args, const struct ft_topology *t, bool **dead,
                     FILE *err)
{
    struct ft_diag *diag = ft_diag_new();
    int rc = diag ? mark_failed(args->failed, t, diag, dead) : EX_OSERR;

    if (diag)
        ft_inputs_complain(err, command_of(args), diag);
    if (rc == EX_OSERR)
        fprintf(err, "fabrictrace %s: no memory\n", command_of(args));
    ft_diag_free(diag);
    return rc;
}

int ft_inputs_load(const struct ft_args *args, struct ft_inputs *inputs, FILE *err)
{
    struct ft_diag *diag = ft_diag_new();
    int rc = EX_OSERR;

    memset(inputs, 0, sizeof(*inputs));
    if (diag)
        rc = load_topology(args->topology, diag, &inputs->topology);
    if (rc == 0)
        rc = load_flows(args->flows, inputs->topology, diag, &inputs->flows);
    if (rc == 0 && args->failed)
        rc = mark_failed(args->failed, inputs->topology, diag, &inputs->dead);
    if (diag)
        ft_inputs_complain(err, command_of(args), diag);
    if (rc == EX_OSERR)
        fprintf(err, "fabrictrace %s: no memory\n", command_of(args));
    if (rc)
        ft_inputs_free(inputs);
    ft_diag_free(diag);
    return rc;
}
