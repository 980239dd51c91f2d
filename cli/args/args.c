// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/args/args.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/args/args_options.h"

#define INTERVAL_S 2
#define LAST_S     1800
#define OUTPUT     "incident.ftr"
#define DRAWS      20

/* First pass: the command is the first word that is neither an option nor the value of one, and the
 * options' validity depends on it. The words help and version are as the options. */
static int find_command(struct ft_args *args, int argc, char **argv, const struct option *longs,
                        FILE *err)
{
    int c;

    opterr = 0;
    optind = 0;
    while ((c = getopt_long(argc, argv, "+:hVo:", longs, NULL)) != -1)
        if (c == '?' || c == ':')
            return 0;
    if (optind >= argc)
        return 0;
    if (strcmp(argv[optind], "help") == 0) {
        args->help = true;
        if (optind + 1 >= argc)
            return 0;
        optind++;
    } else if (strcmp(argv[optind], "version") == 0) {
        args->version = true;
        return 0;
    }
    args->command = ft_args_command_of(argv[optind]);
    return args->command == FT_COMMAND_NONE ? ft_args_no_command(argv[optind], err) : 0;
}

/* The words behind the file are another command, with its options. */
static int parse_replay(struct ft_args *args, int argc, char **argv, FILE *err)
{
    int at = optind + 1;

    if (at >= argc)
        return ft_args_complain(err, args->command,
                                "takes the file that 'fabrictrace record' wrote");
    if (strcmp(argv[at], "-h") == 0 || strcmp(argv[at], "--help") == 0) {
        args->help = true;
        return 0;
    }
    if (argv[at][0] == '-')
        return ft_args_complain(err, args->command,
                                "takes a file first; '%s' is none (of a file of this name: ./%s)",
                                argv[at], argv[at]);
    args->file = argv[at];
    args->rest = argv + at + 1;
    args->rest_count = argc - at - 1;
    return 0;
}

/* Of history as well. What is not a flow is a name, which the daemon looks up; a link may be
 * written as two words. */
static int parse_explain(struct ft_args *args, int words, char **argv, FILE *err)
{
    struct ft_ip ip;

    if (words < 2 || words > 3)
        return ft_args_complain(err, args->command,
                                args->command == FT_COMMAND_HISTORY
                                    ? "takes one link (leaf1/Ethernet51), group (leaf1/up) or "
                                      "flow, such as 10.0.1.1:49441-10.0.3.1"
                                    : "takes one flow, such as 10.0.1.1:49441-10.0.3.1, or one "
                                      "link (leaf1/Ethernet51), group (leaf1/up), job, host or "
                                      "switch");
    /* An address is one of a host. */
    if (words == 2 && (ft_tuple_parse(argv[1], &args->flow) == 0 || !*argv[1] ||
                       (args->command == FT_COMMAND_HISTORY && ft_ip_parse(argv[1], &ip) == 0)))
        return ft_args_flow(args, argv[1], err);
    args->name = argv[1];
    args->port = words == 3 ? argv[2] : NULL;
    return 0;
}

static int parse_chakra(struct ft_args *args, int words, char **argv, FILE *err)
{
    bool export = args->command == FT_COMMAND_EXPORT;

    if (words < 2 || words > 3 || strcmp(argv[1], "chakra") != 0)
        return ft_args_complain(err, args->command,
                                export ? "takes chakra, and perhaps a job"
                                       : "takes chakra and a prefix");
    if (export) {
        args->job = words == 3 ? argv[2] : NULL;
        if (strcmp(args->output, OUTPUT) == 0)
            return ft_args_complain(err, args->command, "needs --output PREFIX");
        if (!args->topology != !args->records)
            return ft_args_complain(err, args->command, "takes --topology with --records");
        return 0;
    }
    args->chakra = words == 3 ? argv[2] : NULL;
    if (!args->chakra || !args->topology)
        return ft_args_complain(err, args->command, "needs a prefix and --topology");
    return 0;
}

/* Options of which one would be ignored beside the other. */
static int check_together(const struct ft_args *args, FILE *err)
{
    if (args->operations && args->incident)
        return ft_args_complain(err, args->command, "takes --operations or --replay, not both");
    if (args->json && args->export)
        return ft_args_complain(err, args->command, "takes --export or --json, not both");
    if (args->json + args->csv + (args->svg != NULL) > 1)
        return ft_args_complain(err, args->command, "takes one of --csv, --svg and --json");
    if (args->json && (args->sort || args->columns))
        return ft_args_complain(err, args->command,
                                "--json prints records as they are: --sort and --columns are of "
                                "tables");
    return 0;
}

/* The same of events, and of the times that they, or windows, are asked for. */
static int check_events(const struct ft_args *args, FILE *err)
{
    if (args->follow && args->limit)
        return ft_args_complain(err, args->command,
                                "--follow prints each event: it cannot be combined with --limit");
    if (!args->has_from && !args->has_to)
        return 0;
    if (args->follow)
        return ft_args_complain(err, args->command,
                                "--follow starts now: it cannot be combined with --since");
    if (args->has_at)
        return ft_args_complain(err, args->command, "takes --at or --since, not both");
    if (!args->has_from)
        return ft_args_complain(err, args->command, "--until goes with --since");
    if (args->has_to && args->to_ms <= args->from_ms)
        return ft_args_complain(err, args->command, "--until is not after --since");
    return 0;
}

static int parse_rest(struct ft_args *args, int argc, char **argv, FILE *err)
{
    int words = argc - optind;

    if (args->help || args->version)
        return 0;
    if (args->command == FT_COMMAND_NONE) {
        ft_args_help(FT_COMMAND_NONE, err);
        return EX_USAGE;
    }
    if (check_together(args, err))
        return EX_USAGE;
    if (args->command == FT_COMMAND_EVENTS && args->follow && (args->sort || args->columns))
        return ft_args_complain(err, args->command,
                                "--follow prints lines, not a table with columns");
    if (((args->command == FT_COMMAND_DIAGNOSE && !args->operations) ||
         args->command == FT_COMMAND_MOVES) &&
        words == 2) {
        args->job = argv[optind + 1];
        return 0;
    }
    if (args->command == FT_COMMAND_REPLAY)
        return parse_replay(args, argc, argv, err);
    if (args->follow && args->has_at)
        return ft_args_complain(err, args->command,
                                "--follow starts now: it cannot be combined with --at");
    if ((args->command == FT_COMMAND_EVENTS || args->command == FT_COMMAND_HISTORY) &&
        check_events(args, err))
        return EX_USAGE;
    if (args->command == FT_COMMAND_WHATIF && args->has_at &&
        (args->records || args->flows || args->chakra))
        return ft_args_complain(err, args->command,
                                "--at names a window of the daemon: files have none");
    if (args->loads && args->limit)
        return ft_args_complain(err, args->command, "--loads has one row: leave out --limit");
    if (args->loads && args->has_at)
        return ft_args_complain(err, args->command,
                                "--loads does not ask the daemon: it cannot be combined with --at");
    if (args->command == FT_COMMAND_PATHS && args->has_at &&
        (!args->has_flow || args->state || args->host || args->switch_name || args->job ||
         args->limit))
        return ft_args_complain(err, args->command,
                                "--at needs --flow and takes no other filter: of past windows only "
                                "the paths of elephants are kept, each by its flow");
    if (args->command == FT_COMMAND_ANALYZE) {
        if (words != 2)
            return ft_args_complain(err, args->command,
                                    "takes one capture, such as sflow.pcap; -: standard "
                                    "input");
        args->capture = argv[optind + 1];
        return 0;
    }
    if (args->command == FT_COMMAND_EXPORT || args->command == FT_COMMAND_IMPORT)
        return parse_chakra(args, words, argv + optind, err);
    if (args->command == FT_COMMAND_PLAN && words == 2 && !args->topology && !args->flows) {
        args->job = argv[optind + 1];
        if (args->apply && args->withdraw)
            return ft_args_complain(err, args->command, "takes --apply or --withdraw");
        return 0;
    }
    if (args->command == FT_COMMAND_PLAN &&
        (args->apply || args->withdraw || args->dry_run || args->oracle_count))
        return ft_args_complain(err, args->command,
                                "--apply, --withdraw, --dry-run and --oracle go with a job alone");
    if (args->command == FT_COMMAND_CONSUME) {
        args->topic = argv[optind + 1];
        return words == 2 ? 0
                          : ft_args_complain(err, args->command,
                                             "takes one topic, such as fabrictrace.path.v1");
    }
    if (args->command == FT_COMMAND_PLAN && (!args->topology || !args->flows))
        return ft_args_complain(err, args->command, "takes a job, or --topology and --flows");
    if (args->command == FT_COMMAND_WHATIF &&
        (args->chakra ? !args->network || !args->system
                      : !args->topology != !(args->flows || args->records)))
        return ft_args_complain(
            err, args->command,
            "takes --topology with --flows or --records, or --chakra, --network and "
            "--system; without these it asks the daemon");
    if (args->flows && args->records)
        return ft_args_complain(err, args->command, "takes --flows or --records, not both");
    if (args->command == FT_COMMAND_PROBE)
        return words == 2 ? ft_args_flow(args, argv[optind + 1], err)
                          : ft_args_complain(err, args->command,
                                             "takes one flow, such as 10.0.1.1:49441-10.0.3.1");
    if (args->command != FT_COMMAND_EXPLAIN && args->command != FT_COMMAND_HISTORY)
        return words > 1
                   ? ft_args_complain(err, args->command, "does not take '%s'", argv[optind + 1])
                   : 0;
    return parse_explain(args, words, argv + optind, err);
}

/* What getopt_long(3) did not take. Inside of a word with several short options optind is still at
 * it, so that the one before is another. */
static int complain_option(const struct ft_args *args, const char *word, FILE *err)
{
    int len = (int)strcspn(word, "=");
    bool letter = optopt && optopt <= UCHAR_MAX && optopt != 'h' && optopt != 'V';

    if (letter)
        return ft_args_complain(err, args->command,
                                isgraph(optopt & UCHAR_MAX) ? "unknown option '-%c'"
                                                            : "unknown option '-\\x%x'",
                                optopt & UCHAR_MAX);
    if (optopt)
        return ft_args_complain(err, args->command, "option '%.*s' takes no value", len, word);
    return ft_args_complain(err, args->command,
                            ft_args_options_like(word + 2, (size_t)len - 2) > 1
                                ? "option '%.*s' may be one of several"
                                : "unknown option '%.*s'",
                            len, word);
}

/* NULL where it is not set, or empty. */
static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

int ft_args_parse(struct ft_args *args, int argc, char **argv, struct ft_wall now, FILE *err)
{
    const char *env = environment("FABRICTRACE_ENDPOINT");
    const struct option *longs = ft_args_longs();
    int c, rc;

    memset(args, 0, sizeof(*args));
    args->stop_fd = -1;
    args->now = now;
    args->endpoint = env ? env : FT_ARGS_ENDPOINT;
    args->token_file = environment("FABRICTRACE_TOKEN_FILE");
    args->ca = environment("FABRICTRACE_CA");
    args->brokers = environment("FABRICTRACE_BROKERS");
    if (!args->brokers)
        args->brokers = FT_ARGS_BROKERS;
    args->interval_s = INTERVAL_S;
    args->last_ms = LAST_S * UINT64_C(1000);
    args->output = OUTPUT;
    args->draws = DRAWS;
    args->pairs = 1;
    rc = find_command(args, argc, argv, longs, err);
    optind = 0;
    while (rc == 0 && !args->help && !args->version &&
           (c = getopt_long(argc, argv, args->command == FT_COMMAND_REPLAY ? "+:hV" : ":hVo:",
                            longs, NULL)) != -1) {
        if (c == '?')
            rc = complain_option(args, argv[optind - 1], err);
        else if (c == ':')
            rc =
                ft_args_complain(err, args->command, "option '%s' needs a value", argv[optind - 1]);
        else if (!ft_args_takes(args->command, c))
            rc = ft_args_complain(err, args->command, "does not take --%s", ft_args_option_name(c));
        else
            rc = ft_args_option(args, c, optarg, err);
    }
    return rc ? rc : parse_rest(args, argc, argv, err);
}

void ft_args_free(struct ft_args *args)
{
    free(args->loads);
}
