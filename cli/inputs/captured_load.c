// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/inputs/captured_load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/fetch/fetch.h"
#include "cli/inputs/inputs.h"
#include "cli/show/show.h"
#include "lib/config/yaml.h"
#include "lib/files/slurp.h"
#include "lib/files/topology_file.h"

#define RECORDS_MAX_BYTES (1u << 30)
/* A daemon publishes the path of a flow anew after so long (path_refresh), where nothing changed;
 * asked, it says what was in the last window. */
#define REFRESH_MS   60000
#define ERROR_BYTES  256
#define TARGET_BYTES 640
#define AT_BYTES     32

/* The daemon's topology, by way of the file that it would be. */
static int build_topology(const struct ft_value *root, struct ft_diag *diag,
                          struct ft_topology **topology)
{
    struct ft_yaml *yaml = NULL;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return EX_OSERR;
    ft_export_topology(out, root);
    if (fclose(out) == 0)
        yaml = ft_yaml_parse(text, len, "topology", diag);
    *topology = yaml ? ft_topology_file_read(yaml, diag) : NULL;
    ft_yaml_free(yaml);
    free(text);
    return *topology ? 0 : EX_PROTOCOL;
}

static int fetch_topology(const struct ft_args *args, const char *command, struct ft_captured *c)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_answer *answer = NULL;
    int rc = diag ? ft_fetch_target(args, "/api/v1/topology", &answer, stderr) : EX_OSERR;

    if (rc == 0)
        rc = build_topology(ft_answer_root(answer), diag, &c->inputs.topology);
    if (diag && rc)
        ft_inputs_complain(stderr, command, diag);
    ft_answer_free(answer);
    ft_diag_free(diag);
    return rc;
}

static int add_records(struct ft_captured *c, const struct ft_value *records, const char *command)
{
    for (size_t i = 0; i < ft_value_count(records); i++) {
        char *text = ft_value_dump(ft_value_at(records, i)), error[ERROR_BYTES];
        Fabrictrace__Record *record;
        int rc = text ? ft_record_from_newer(text, strlen(text), &record, error, sizeof(error))
                      : -ENOMEM;

        free(text);
        if (rc == -EINVAL) {
            fprintf(stderr, "fabrictrace %s: a record of the daemon: %s\n", command, error);
            return EX_PROTOCOL;
        }
        if (rc || ft_captured_add_take(c, record))
            return EX_OSERR;
    }
    return 0;
}

/* All pages of a list. */
static int fetch_list(const struct ft_args *args, const char *command, const char *list,
                      struct ft_captured *c)
{
    char target[TARGET_BYTES], next[TARGET_BYTES / 2] = "", at[AT_BYTES] = "";
    int rc = 0;

    if (args->has_at)
        snprintf(at, sizeof(at), "&at_ms=%" PRIu64, args->at_ms);

    do {
        struct ft_answer *answer = NULL;
        const char *cursor;

        snprintf(target, sizeof(target), "/api/v1/%s?limit=10000%s%s%s", list, at,
                 *next ? "&cursor=" : "", next);
        rc = ft_fetch_target(args, target, &answer, stderr);
        if (rc)
            return rc;
        cursor = ft_value_str(ft_answer_root(answer), "next");
        snprintf(next, sizeof(next), "%s", cursor ? cursor : "");
        rc = add_records(c, ft_value_get(ft_answer_root(answer), "records"), command);
        ft_answer_free(answer);
    } while (rc == 0 && *next);
    return rc;
}

static int load_daemon(const struct ft_args *args, const char *command, struct ft_captured *c)
{
    static const char *const now[] = {"links", "paths", "imbalance", "collectives", NULL};
    /* Of a past window elephants are kept, and no collectives. */
    static const char *const then[] = {"links", "elephants", "imbalance", NULL};
    const char *const *lists = args->has_at ? then : now;
    int rc = fetch_topology(args, command, c);

    for (; *lists && rc == 0; lists++)
        rc = fetch_list(args, command, *lists, c);
    return rc;
}

/* Lines of other kinds are passed over unread: files of a daemon have all of them. */
static bool is_used(const char *line, size_t len)
{
    static const char *const schemas[] = {"\"fabrictrace.path.v1\"", "\"fabrictrace.link.v1\"",
                                          "\"fabrictrace.imbalance.v1\"",
                                          "\"fabrictrace.collective.v1\""};

    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++)
        if (memmem(line, len < 64 ? len : 64, schemas[i], strlen(schemas[i])))
            return true;
    return false;
}

static int read_lines(struct ft_captured *c, const char *text, size_t len, const char *file,
                      struct ft_diag *diag)
{
    unsigned number = 0;

    for (const char *line = text, *end = text + len; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t bytes = (size_t)((newline ? newline : end) - line);
        Fabrictrace__Record *record;
        char error[ERROR_BYTES];
        int rc;

        number++;
        if (is_used(line, bytes)) {
            rc = ft_record_from_newer(line, bytes, &record, error, sizeof(error));
            if (rc == -EINVAL)
                ft_diag_add(diag, file, number, "%s", error);
            if (rc)
                return rc == -EINVAL ? EX_DATAERR : EX_OSERR;
            if (ft_captured_add_take(c, record))
                return EX_OSERR;
        }
        line += bytes + 1;
    }
    return 0;
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

static int load_records(const struct ft_args *args, struct ft_diag *diag, struct ft_captured *c)
{
    char *text;
    size_t len;
    int rc = load_topology(args->topology, diag, &c->inputs.topology);

    if (rc)
        return rc;
    rc = ft_slurp(args->records, RECORDS_MAX_BYTES, &text, &len);
    if (rc) {
        ft_diag_add(diag, args->records, 0, "%s", strerror(-rc));
        return rc == -ENOMEM ? EX_OSERR : EX_NOINPUT;
    }
    rc = read_lines(c, text, len, args->records, diag);
    free(text);
    return rc;
}

static int load_files(const struct ft_args *args, const char *command, struct ft_captured *c)
{
    struct ft_diag *diag = ft_diag_new();
    int rc = diag ? load_records(args, diag, c) : EX_OSERR;

    if (diag)
        ft_inputs_complain(stderr, command, diag);
    ft_diag_free(diag);
    return rc;
}

int ft_captured_read(const struct ft_args *args, const char *command, struct ft_captured *c)
{
    int rc;

    memset(c, 0, sizeof(*c));
    c->slack_ms = args->records ? REFRESH_MS : 0;
    rc = args->records ? load_files(args, command, c) : load_daemon(args, command, c);
    if (rc)
        ft_captured_free(c);
    return rc;
}

int ft_captured_load(const struct ft_args *args, const char *command, struct ft_captured *c)
{
    int rc = ft_captured_read(args, command, c);

    if (rc == 0) {
        int built = ft_captured_build(c);

        if (built == -ENODATA) {
            if (args->records && c->record_count == 0)
                fprintf(stderr, "%s: has no records of paths or links\n", args->records);
            else
                fprintf(stderr, "fabrictrace %s: no flow of the last window counts\n", command);
            ft_captured_print_left_out(c, stderr);
            rc = EX_DATAERR;
        } else if (built) {
            rc = EX_OSERR;
        }
    }
    if (rc == EX_OSERR)
        fprintf(stderr, "fabrictrace %s: no memory\n", command);
    if (rc)
        ft_captured_free(c);
    return rc;
}
