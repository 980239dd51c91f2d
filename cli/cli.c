// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/args/args.h"
#include "cli/diagnose.h"
#include "cli/fetch/consume.h"
#include "cli/fetch/fetch.h"
#include "cli/fetch/follow.h"
#include "cli/fetch/history.h"
#include "cli/fetch/node.h"
#include "cli/fetch/probe.h"
#include "cli/fetch/record.h"
#include "cli/live/analyze.h"
#include "cli/live/live.h"
#include "cli/live/replay.h"
#include "cli/loads.h"
#include "cli/output/choice.h"
#include "cli/plan/plan.h"
#include "cli/plan/plan_files.h"
#include "cli/plan/plan_job.h"
#include "cli/show/show.h"
#include "cli/show/show_matrix.h"
#include "cli/top/top.h"
#include "cli/traces/astra.h"
#include "cli/traces/chakra.h"
#include "cli/whatif/whatif.h"

typedef int show_answer(const struct ft_screen *screen, const struct ft_value *root);

/* Whether the daemon sends all, and --limit chooses here: of events the newest, of tables the rows
 * that come first. */
static bool chooses(const struct ft_args *args)
{
    return args->limit &&
           (args->command == FT_COMMAND_EVENTS || args->command == FT_COMMAND_LINKS ||
            args->command == FT_COMMAND_IMBALANCE);
}

/* The same for --json. -ENOMEM. */
static int limit(const struct ft_args *args, struct ft_answer *answer)
{
    const struct ft_value *records = ft_value_get(ft_answer_root(answer), "records");
    bool *keep;

    if (!args->json || !chooses(args))
        return 0;
    keep = args->command == FT_COMMAND_EVENTS ? ft_choice_newest(records, args->limit)
                                              : ft_choice_first(records, args->limit);
    if (!keep)
        return -ENOMEM;
    ft_answer_keep(answer, keep);
    free(keep);
    return 0;
}

/* All or nothing: what stands before a table would be printed before the complaint of a column that
 * it does not have. */
static int show_complete(const struct ft_screen *screen, const struct ft_value *root,
                         show_answer *show)
{
    struct ft_screen own = *screen;
    char *text = NULL;
    size_t bytes;
    int rc;

    own.out = open_memstream(&text, &bytes);
    if (!own.out)
        return -ENOMEM;
    rc = show(&own, root);
    if (fclose(own.out) != 0 && rc == 0)
        rc = -ENOMEM;
    if (rc == 0)
        fwrite(text, 1, bytes, screen->out);
    free(text);
    return rc;
}

/* window, since: that the answer is of, where it is not the last window; NULL. */
static int show(const struct ft_args *args, const struct ft_value *root,
                const struct ft_value *window, const struct ft_since *since)
{
    static show_answer *const shows[FT_COMMANDS] = {
        [FT_COMMAND_PATHS] = ft_show_paths,         [FT_COMMAND_LINKS] = ft_show_links,
        [FT_COMMAND_IMBALANCE] = ft_show_imbalance, [FT_COMMAND_COLLISIONS] = ft_show_collisions,
        [FT_COMMAND_EXPLAIN] = ft_show_explain,     [FT_COMMAND_TOPOLOGY] = ft_show_topology,
        [FT_COMMAND_DOCTOR] = ft_show_doctor,       [FT_COMMAND_RANKS] = ft_show_ranks,
        [FT_COMMAND_EVENTS] = ft_show_events,       [FT_COMMAND_QPS] = ft_show_qps,
        [FT_COMMAND_HASH] = ft_show_hash,           [FT_COMMAND_DIAGNOSE] = ft_show_diagnoses,
        [FT_COMMAND_SPREAD] = ft_show_spread,       [FT_COMMAND_RHYTHM] = ft_show_rhythm,
        [FT_COMMAND_PLANS] = ft_show_plans,         [FT_COMMAND_MOVES] = ft_show_moves,
        [FT_COMMAND_PROBES] = ft_show_probes,       [FT_COMMAND_HISTORY] = ft_show_history,
    };
    struct ft_screen screen;
    bool left_out = false;
    int rc;

    if (args->json)
        return ft_show_json(stdout, root,
                            args->command == FT_COMMAND_EXPLAIN ||
                                args->command == FT_COMMAND_TOPOLOGY);
    if (args->export)
        return ft_export_topology(stdout, root);
    ft_screen_init(&screen, stdout);
    screen.err = stderr;
    screen.layout = (struct ft_layout){args->sort, args->columns, chooses(args) ? args->limit : 0};
    screen.chosen = args->host || args->switch_name || args->group || args->job || args->op ||
                    args->kind || args->verdict || args->severity;
    screen.window = window;
    screen.since = since;
    if (args->wide)
        screen.width = 0;
    screen.left_out = &left_out;
    if (args->command == FT_COMMAND_MATRIX)
        rc = ft_show_matrix(&screen, root, args);
    else if (args->sort || args->columns)
        rc = show_complete(&screen, root, shows[args->command]);
    else
        rc = shows[args->command](&screen, root);
    if (rc == 0 && left_out)
        fputs("(columns are left out: --wide shows them)\n", stdout);
    return rc;
}

/* Of what the doctor finds and of events: whether one is worse than a note. */
static bool stands(const struct ft_args *args, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");

    if (args->command != FT_COMMAND_DOCTOR && args->command != FT_COMMAND_EVENTS &&
        args->command != FT_COMMAND_DIAGNOSE)
        return false;
    for (size_t i = 0; i < ft_value_count(records); i++)
        if (ft_value_is(ft_value_at(records, i), "severity", "warning") ||
            ft_value_is(ft_value_at(records, i), "severity", "critical"))
            return true;
    return false;
}

/* Asks the daemon and shows the answer. An exit status; *failed: -errno of what went wrong then. */
static int ask(const struct ft_args *args, int *failed)
{
    struct ft_answer *answer = NULL, *past = NULL, *active = NULL;
    const struct ft_value *window = NULL;
    struct ft_since since = {.from_ms = args->from_ms, .to_ms = args->has_to ? args->to_ms : 0};
    bool standing = false;
    int rc = args->has_at ? ft_fetch_window(args, &past, stderr) : 0;

    if (rc == 0)
        rc = args->command == FT_COMMAND_HISTORY ? ft_fetch_history(args, &answer, stderr)
                                                 : ft_fetch_node(args, &answer, stderr);
    if (rc == 0 && args->command == FT_COMMAND_EVENTS && args->has_from && !args->json)
        rc = ft_fetch_kept(args, &since.kept_ms, &active, stderr);
    since.active = active ? ft_value_get(ft_answer_root(active), "records") : NULL;
    if (rc == 0) {
        if (past)
            window = ft_value_at(ft_value_get(ft_answer_root(past), "records"), 0);
        standing = stands(args, ft_answer_root(answer));
        *failed = limit(args, answer);
        if (*failed == 0)
            *failed = show(args, ft_answer_root(answer), window, args->has_from ? &since : NULL);
        rc = standing ? FT_EXIT_STANDS : EX_OK;
    }
    ft_answer_free(answer);
    ft_answer_free(past);
    ft_answer_free(active);
    return rc;
}

static int run_at(int argc, char **argv, struct ft_wall now);

/* The same of an incident: as `replay FILE diagnose` has it. */
static int diagnose_incident(const struct ft_args *args)
{
    struct ft_args replay = *args;
    char command[] = "diagnose", json[] = "--json";
    char *words[3] = {command};

    replay.file = args->incident;
    replay.rest = words;
    replay.rest_count = 1;
    if (args->json)
        words[replay.rest_count++] = json;
    if (args->job)
        words[replay.rest_count++] = (char *)(uintptr_t)args->job;
    return ft_replay_command(&replay, run_at);
}

static int run(const struct ft_args *args)
{
    int status = EX_OK, rc = 0;

    if (args->command == FT_COMMAND_ANALYZE)
        return ft_analyze_command(args);
    if (args->command == FT_COMMAND_LIVE)
        return ft_live_command(args);
    if (args->command == FT_COMMAND_RECORD)
        return ft_record_command(args);
    if (args->command == FT_COMMAND_REPLAY)
        return ft_replay_command(args, run_at);
    if (args->command == FT_COMMAND_TOP)
        return ft_top_run(args);
    if (args->command == FT_COMMAND_PLAN && args->withdraw)
        return ft_plan_files_withdraw(args);
    if (args->command == FT_COMMAND_PLAN)
        return args->job ? ft_plan_job_run(args) : ft_plan_run(args);
    if (args->command == FT_COMMAND_WHATIF)
        return args->chakra ? ft_astra_command(args) : ft_whatif_command(args);
    if (args->command == FT_COMMAND_EXPORT)
        return ft_chakra_export(args);
    if (args->command == FT_COMMAND_IMPORT)
        return ft_chakra_import(args);
    if (args->command == FT_COMMAND_CONSUME)
        return ft_consume_command(args);
    if (args->command == FT_COMMAND_PROBE)
        return ft_probe_command(args);
    if (args->follow)
        return ft_follow_run(args);
    if (args->incident)
        return diagnose_incident(args);
    if (args->operations)
        return ft_diagnose_show(stdout, stderr, args->json, args->operations);
    if (args->loads)
        rc = ft_loads_show(stdout, args->json, args->loads, args->load_count);
    else
        status = ask(args, &rc);
    if (rc == -E2BIG && args->command == FT_COMMAND_MATRIX) {
        fprintf(stderr,
                "fabrictrace matrix: a communicator has more than %d rows; --by host may have "
                "fewer, --json has them all\n",
                FT_MATRIX_LABELS_MAX);
        return EX_DATAERR;
    }
    if (rc == -EMLINK || (rc == -ENODATA && args->svg)) {
        fprintf(stderr, "fabrictrace matrix: %s\n",
                rc == -EMLINK ? "--svg shows one communicator; choose it by --comm"
                              : "no communicator is known: there is nothing to draw");
        return EX_USAGE;
    }
    if (rc == -EINVAL && (args->sort || args->columns))
        return EX_USAGE;
    if (rc < 0) {
        fprintf(stderr, "fabrictrace: %s%s%s\n", args->svg ? args->svg : "", args->svg ? ": " : "",
                strerror(-rc));
        return rc == -ENOMEM || !args->svg ? EX_OSERR : EX_CANTCREAT;
    }
    return status;
}

static int run_at(int argc, char **argv, struct ft_wall now)
{
    struct ft_args args;
    int rc;

    if (argc > 1 && strcmp(argv[1], "--complete") == 0) {
        ft_args_complete(argc - 2, argv + 2, stdout);
        return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
    }
    rc = ft_args_parse(&args, argc, argv, now, stderr);
    if (rc == EX_OSERR)
        fprintf(stderr, "fabrictrace: no memory\n");
    else if (rc == 0 && args.version)
        printf("fabrictrace %s\n", PACKAGE_VERSION);
    else if (rc == 0 && args.help)
        ft_args_help(args.command, stdout);
    else if (rc == 0)
        rc = run(&args);
    ft_args_free(&args);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "fabrictrace: standard output: %s\n",
                errno ? strerror(errno) : "a part of it could not be written");
        return EX_IOERR;
    }
    return rc;
}

int ft_cli_run(int argc, char **argv)
{
    return run_at(argc, argv, ft_wall_now());
}
