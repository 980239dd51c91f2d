// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/args/args_options.h"
#include "cli/args/moment.h"

#define INTERVAL_S_MAX 3600
#define LAST_MAX       1000000 /* of a unit */

static int parse_loads(struct ft_args *args, const char *text, FILE *err)
{
    size_t count = 1;
    uint64_t *loads, sum = 0;

    for (const char *c = text; *c; c++)
        count += *c == ',';
    if (count > FT_CLI_LOADS_MAX)
        return ft_args_complain(err, FT_COMMAND_IMBALANCE, "--loads takes at most %d links",
                                FT_CLI_LOADS_MAX);
    loads = calloc(count, sizeof(*loads));
    if (!loads)
        return EX_OSERR;
    for (size_t i = 0; i < count; i++) {
        const char *end = text + strcspn(text, ",");

        if (ft_args_number(text, end, &loads[i]) < 0 || loads[i] > UINT32_MAX ||
            (sum += loads[i]) > UINT32_MAX) {
            free(loads);
            return ft_args_complain(
                err, FT_COMMAND_IMBALANCE,
                "--loads takes integers with commas between them, such as 7,5,3,1; "
                "'%.*s' is not valid",
                (int)(end - text), text);
        }
        text = end + 1;
    }
    free(args->loads);
    args->loads = loads;
    args->load_count = count;
    return 0;
}

int ft_args_flow(struct ft_args *args, const char *text, FILE *err)
{
    if (ft_tuple_parse(text, &args->flow) < 0)
        return ft_args_complain(
            err, args->command,
            "'%s' is not a flow. Write it as 10.0.1.1:49441-10.0.3.1 or [fd00::1]:49441-[fd00::2]",
            text);
    args->has_flow = true;
    return 0;
}

static int parse_by(struct ft_args *args, const char *value, FILE *err)
{
    static const char *const names[] = {
        [FT_MATRIX_RANK] = "rank", [FT_MATRIX_GPU] = "gpu", [FT_MATRIX_HOST] = "host"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], value) == 0) {
            args->by = (enum ft_matrix_by)i;
            return 0;
        }
    }
    return ft_args_complain(err, args->command, "--by takes rank, gpu or host, not '%s'", value);
}

static int parse_matrix_option(struct ft_args *args, int c, const char *value, FILE *err)
{
    switch (c) {
    case OPT_COMM:
        args->comm = value;
        break;
    case OPT_OP:
        args->op = value;
        break;
    case OPT_BY:
        return parse_by(args, value, err);
    case OPT_BYTES:
        args->messages = false;
        break;
    case OPT_MESSAGES:
        args->messages = true;
        break;
    case OPT_CSV:
        args->csv = true;
        break;
    default:
        args->svg = value;
    }
    return 0;
}

static int parse_interval(struct ft_args *args, const char *value, FILE *err)
{
    uint64_t seconds;

    if (ft_args_number(value, value + strlen(value), &seconds) < 0 || seconds == 0 ||
        seconds > INTERVAL_S_MAX)
        return ft_args_complain(err, args->command,
                                "--interval takes an integer number of seconds from 1 to %d",
                                INTERVAL_S_MAX);
    args->interval_s = (unsigned)seconds;
    return 0;
}

/* "90s", "30m", "2h". */
static int parse_last(struct ft_args *args, const char *value, FILE *err)
{
    size_t len = strlen(value);
    uint64_t number, unit_ms = 0;

    if (len && value[len - 1] == 's')
        unit_ms = 1000;
    else if (len && value[len - 1] == 'm')
        unit_ms = 60000;
    else if (len && value[len - 1] == 'h')
        unit_ms = 3600000;
    if (!unit_ms || ft_args_number(value, value + len - 1, &number) < 0 || number == 0 ||
        number > LAST_MAX)
        return ft_args_complain(err, args->command, "--last takes a time, such as 90s, 30m or 2h");
    args->last_ms = number * unit_ms;
    return 0;
}

static int parse_moment(struct ft_args *args, int c, const char *value, FILE *err)
{
    struct ft_wall moment;

    /* What is replayed may hold a moment after its last window. */
    if (ft_moment_parse(value, args->now, &moment) < 0 &&
        ft_moment_parse(value, ft_wall_now(), &moment) < 0)
        return ft_args_complain(
            err, args->command,
            "--%s takes a time that is over: 10:41, 10:41:20, '2026-11-20 10:41:20', "
            "2026-11-20T10:41:20Z, -5m or @SECONDS; '%s' is not one",
            ft_args_option_name(c), value);
    if (c == OPT_AT) {
        args->has_at = true;
        args->at_ms = (uint64_t)moment.ms;
    } else if (c == OPT_UNTIL) {
        args->has_to = true;
        args->to_ms = (uint64_t)moment.ms;
    } else {
        args->has_from = true;
        args->from_ms = (uint64_t)moment.ms;
    }
    return 0;
}

static int parse_filter(struct ft_args *args, const char *value, FILE *err)
{
    const char *equals = strchr(value, '=');

    if (!equals || equals == value)
        return ft_args_complain(err, args->command,
                                "--filter takes NAME=VALUE, such as state=partial");
    if (args->filter_count == FT_CLI_FILTERS_MAX)
        return ft_args_complain(err, args->command, "--filter at most %d times",
                                FT_CLI_FILTERS_MAX);
    args->filters[args->filter_count++] = value;
    return 0;
}

/* The value of an option that takes one word of a closed list. *out borrows it. */
static int parse_choice(struct ft_args *args, int c, const char *what, const char *value,
                        const char **out, FILE *err)
{
    const char *known = ft_args_choices(args->command, c);

    for (const char *at = known; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strcspn(at, " ") == strlen(value) && strncmp(at, value, strlen(value)) == 0) {
            *out = value;
            return 0;
        }
    }
    return ft_args_complain(err, args->command, "'%s' is not a %s: these are: %s", value, what,
                            known);
}

int ft_args_option(struct ft_args *args, int c, const char *value, FILE *err)
{
    static const char *const states[] = {"resolved", "partial", "multipath", "unresolved"};

    if (c >= OPT_COMM && c <= OPT_SVG)
        return parse_matrix_option(args, c, value, err);
    if (c >= OPT_FLOWS && c <= OPT_SIM_LAST)
        return ft_args_sim_option(args, c, value, err);
    switch (c) {
    case OPT_ENDPOINT:
        args->endpoint = value;
        break;
    case OPT_JSON:
        args->json = true;
        break;
    case OPT_EXPORT:
        args->export = true;
        break;
    case OPT_WIDE:
        args->wide = true;
        break;
    case OPT_SORT:
        args->sort = value;
        break;
    case OPT_COLUMNS:
        if (!*value)
            return ft_args_complain(err, args->command, "--columns takes names of columns");
        args->columns = value;
        break;
    case OPT_OPERATIONS:
        args->operations = value;
        break;
    case OPT_REPLAY:
        args->incident = value;
        break;
    case OPT_HOST:
        args->host = value;
        break;
    case OPT_GROUP:
        args->group = value;
        break;
    case OPT_SWITCH:
        args->switch_name = value;
        break;
    case OPT_JOB:
        args->job = value;
        break;
    case OPT_KIND:
        args->kind = value;
        break;
    case OPT_SEVERITY:
        return parse_choice(args, c, "severity", value, &args->severity, err);
    case OPT_VERDICT:
        return parse_choice(args, c, "verdict", value, &args->verdict, err);
    case OPT_FOLLOW:
        args->follow = true;
        break;
    case OPT_SOCKET:
        args->socket = value;
        break;
    case OPT_DSCP:
        if (ft_args_number(value, value + strlen(value), &args->dscp) || args->dscp > 63)
            return ft_args_complain(err, args->command, "--dscp takes a number up to 63");
        break;
    case OPT_QP:
        if (ft_args_number(value, value + strlen(value), &args->dst_qp) || args->dst_qp > 0xffffff)
            return ft_args_complain(err, args->command, "--qp takes a number of 24 bits");
        args->has_dst_qp = true;
        break;
    case OPT_LAST:
        return parse_last(args, value, err);
    case 'o':
        args->output = value;
        break;
    case OPT_SFLOW:
        args->sflow = value;
        break;
    case OPT_TOKEN_FILE:
        args->token_file = value;
        break;
    case OPT_CA:
        args->ca = value;
        break;
    case OPT_AT:
    case OPT_FROM:
    case OPT_SINCE:
    case OPT_UNTIL:
        return parse_moment(args, c, value, err);
    case OPT_FILTER:
        return parse_filter(args, value, err);
    case OPT_BROKERS:
        args->brokers = value;
        break;
    case OPT_PROPERTIES:
        args->properties = value;
        break;
    case OPT_SERVE:
        args->serve = true;
        break;
    case OPT_TOPOLOGY:
        args->topology = value;
        break;
    case OPT_INTERVAL:
        return parse_interval(args, value, err);
    case OPT_FLOW:
        return ft_args_flow(args, value, err);
    case OPT_LOADS:
        return parse_loads(args, value, err);
    case OPT_LIMIT:
        if (ft_args_number(value, value + strlen(value), &args->limit) < 0 || args->limit == 0)
            return ft_args_complain(err, args->command, "--limit takes an integer from 1");
        break;
    case OPT_STATE:
        /* The daemon knows those of queue pairs. */
        args->state = args->command == FT_COMMAND_QPS ? value : NULL;
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
            if (strcmp(states[i], value) == 0)
                args->state = states[i];
        if (!args->state)
            return ft_args_complain(err, args->command, "'%s' is not a state: these are: %s", value,
                                    ft_args_choices(FT_COMMAND_PATHS, OPT_STATE));
        break;
    case 'h':
        args->help = true;
        break;
    default:
        args->version = true;
    }
    return 0;
}
