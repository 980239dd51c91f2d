// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/args.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/args_options.h"
#include "cli/moment.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/json.h"

#define DEFAULT_ENDPOINT "127.0.0.1:9478"

#define FOR(command) (1U << FT_COMMAND_##command)
#define FOR_ALL      (~0U)
/* Commands that the history has answers for. */
#define FOR_PAST (FOR(PATHS) | FOR(LINKS) | FOR(IMBALANCE) | FOR(COLLISIONS) | FOR(EVENTS))
/* Commands that start a daemon of their own and ask none. */
#define FOR_OWN (FOR(LIVE) | FOR(ANALYZE))
#define FOR_TABLES                                                                                 \
    (FOR(PATHS) | FOR(LINKS) | FOR(IMBALANCE) | FOR(EVENTS) | FOR(RANKS) | FOR(QPS) | FOR(CONSUME))
#define BROKERS        "localhost:9092"
#define INTERVAL_S     2
#define INTERVAL_S_MAX 3600
#define LAST_S         1800
#define LAST_MAX       1000000 /* of a unit */
#define OUTPUT         "incident.ftr"
#define DRAWS          20

static const struct {
    struct option option;
    unsigned commands;
    const char *help;
} options[] = {
    {{"state", required_argument, NULL, OPT_STATE},
     FOR(PATHS) | FOR(QPS),
     "STATE    of paths: resolved, partial, multipath or unresolved; of queue pairs: paired, "
     "reported, no_peer, several_peers ..."},
    {{"host", required_argument, NULL, OPT_HOST},
     FOR(PATHS) | FOR(QPS) | FOR(SPREAD),
     "HOST     flows from or to this host; queue pairs of it"},
    {{"flow", required_argument, NULL, OPT_FLOW}, FOR(PATHS), "FLOW     this flow"},
    {{"limit", required_argument, NULL, OPT_LIMIT},
     FOR(PATHS) | FOR(QPS) | FOR(SPREAD) | FOR(CONSUME),
     "N        at most N of them"},
    {{"group", required_argument, NULL, OPT_GROUP},
     FOR(LINKS) | FOR(SPREAD),
     "GROUP    links of one ECMP group, such as leaf1/up"},
    {{"kind", required_argument, NULL, OPT_KIND},
     FOR(EVENTS),
     "KIND     events of this kind, such as link_down"},
    {{"follow", no_argument, NULL, OPT_FOLLOW},
     FOR(EVENTS) | FOR(CONSUME),
     "         continue, and print events as they begin and end, or records as they come"},
    {{"interval", required_argument, NULL, OPT_INTERVAL},
     FOR(TOP) | FOR(EVENTS) | FOR(CONSUME),
     "SECONDS  between two updates, of events and a topic with --follow (2)"},
    {{"loads", required_argument, NULL, OPT_LOADS},
     FOR(IMBALANCE),
     "N,N,...  flows per link: compute the figures here, without a daemon"},
    {{"comm", required_argument, NULL, OPT_COMM},
     FOR(MATRIX) | FOR(RANKS),
     "ID       this communicator"},
    {{"op", required_argument, NULL, OPT_OP},
     FOR(MATRIX),
     "OP       this operation: AllReduce, AllGather, ReduceScatter, Broadcast, Send ..."},
    {{"by", required_argument, NULL, OPT_BY}, FOR(MATRIX), "WHAT     rank, gpu or host (rank)"},
    {{"bytes", no_argument, NULL, OPT_BYTES}, FOR(MATRIX), "         count bytes (the default)"},
    {{"messages", no_argument, NULL, OPT_MESSAGES}, FOR(MATRIX), "         count messages"},
    {{"csv", no_argument, NULL, OPT_CSV}, FOR(MATRIX), "         comma-separated values"},
    {{"svg", required_argument, NULL, OPT_SVG},
     FOR(MATRIX),
     "FILE     a heat map of one communicator as SVG (-: standard output)"},
    {{"export", no_argument, NULL, OPT_EXPORT},
     FOR(TOPOLOGY),
     "         as a topology file that fabrictraced reads back"},
    {{"sort", required_argument, NULL, OPT_SORT},
     FOR_TABLES,
     "COLUMN   rows by this column: numbers the largest first; -COLUMN reverses the order"},
    {{"columns", required_argument, NULL, OPT_COLUMNS}, FOR_TABLES, "A,B,...  these columns alone"},
    {{"operations", required_argument, NULL, OPT_OPERATIONS},
     FOR(DIAGNOSE),
     "FILE     a table of operations as comma-separated values (-: standard input)"},
    {{"wide", no_argument, NULL, OPT_WIDE},
     FOR_TABLES,
     "         complete lines, however wide the terminal is"},
    {{"last", required_argument, NULL, OPT_LAST},
     FOR(RECORD),
     "TIME     how far back, as 90s, 30m or 2h (30m)"},
    {{"output", required_argument, NULL, 'o'},
     FOR(RECORD) | FOR(EXPORT),
     "FILE     where to (-o; incident.ftr); of export the beginning of the files' names"},
    {{"sflow", required_argument, NULL, OPT_SFLOW},
     FOR(LIVE),
     "A:P      where switches send their sFlow (UDP :6343, all addresses)"},
    {{"topology", required_argument, NULL, OPT_TOPOLOGY},
     FOR_OWN | FOR(PLAN) | FOR(WHATIF) | FOR(EXPORT) | FOR(IMPORT),
     "FILE     the fabric (fabrictrace-topology(5)); where left out, learnt from the samples"},
    {{"serve", no_argument, NULL, OPT_SERVE},
     FOR(ANALYZE),
     "         then keep the page and the API up on it, until Ctrl-C"},
    {{"at", required_argument, NULL, OPT_AT},
     FOR_PAST,
     "TIME     in the window of then: 10:41, '2026-11-20 10:41:20', -5m, @SECONDS; of paths with "
     "--flow"},
    {{"flows", required_argument, NULL, OPT_FLOWS},
     FOR(PLAN) | FOR(WHATIF),
     "FILE     flows as CSV: src,dst,rate_bps (-: standard input)"},
    {{"previous", required_argument, NULL, OPT_PREVIOUS},
     FOR(PLAN),
     "FILE     an earlier plan's --json: only flows that have to move do"},
    {{"failed", required_argument, NULL, OPT_FAILED},
     FOR(PLAN) | FOR(WHATIF),
     "LINK,... links (leaf1/Ethernet51) and switches that are down"},
    {{"apply", required_argument, NULL, OPT_APPLY},
     FOR(PLAN),
     "FOLDER   lays the plan of a job down for agents to give to its new queue pairs"},
    {{"withdraw", required_argument, NULL, OPT_WITHDRAW},
     FOR(PLAN),
     "FOLDER   takes the plan of a job away again"},
    {{"dry-run", no_argument, NULL, OPT_DRY_RUN},
     FOR(PLAN),
     "         with --apply or --withdraw: says what would be done, and does nothing"},
    {{"policy", required_argument, NULL, OPT_POLICY},
     FOR(WHATIF),
     "NAME,... observed, ecmp, learnt, crc16, crc32, xor, static, greedy, plan, spray"},
    {{"records", required_argument, NULL, OPT_RECORDS},
     FOR(WHATIF) | FOR(EXPORT),
     "FILE     records that fabrictraced wrote, instead of asking it (-: standard input)"},
    {{"pairs", required_argument, NULL, OPT_PAIRS},
     FOR(WHATIF),
     "N        queue pairs of each flow, each with a path of its own (1)"},
    {{"spray", required_argument, NULL, OPT_SPRAY},
     FOR(WHATIF),
     "N        paths of a sprayed flow at most (all)"},
    {{"add-spines", required_argument, NULL, OPT_ADD_SPINES},
     FOR(WHATIF),
     "N        spines more, each wired as one of those there are"},
    {{"fabric-speed", required_argument, NULL, OPT_FABRIC_SPEED},
     FOR(WHATIF),
     "BPS      speed of all links between switches"},
    {{"draws", required_argument, NULL, OPT_DRAWS},
     FOR(WHATIF),
     "N        seeds of the policies that draw (20)"},
    {{"chakra", required_argument, NULL, OPT_CHAKRA},
     FOR(WHATIF),
     "PREFIX   traces PREFIX.RANK.et of every rank"},
    {{"network", required_argument, NULL, OPT_NETWORK},
     FOR(WHATIF),
     "FILE     ASTRA-sim's analytical network (YAML)"},
    {{"system", required_argument, NULL, OPT_SYSTEM},
     FOR(WHATIF),
     "FILE     ASTRA-sim's system layer (JSON)"},
    {{"groups", required_argument, NULL, OPT_GROUPS},
     FOR(WHATIF),
     "FILE     communicator groups (JSON): {\"1\":[0,1]}"},
    {{"unaware", no_argument, NULL, OPT_UNAWARE},
     FOR(WHATIF),
     "         messages never wait for a link (always so with several dimensions)"},
    {{"brokers", required_argument, NULL, OPT_BROKERS},
     FOR(CONSUME),
     "H:P,...  brokers of Kafka (" BROKERS ", or FABRICTRACE_BROKERS)"},
    {{"properties", required_argument, NULL, OPT_PROPERTIES},
     FOR(CONSUME),
     "FILE     settings of librdkafka, a NAME=VALUE a line: security.protocol=ssl"},
    {{"from", required_argument, NULL, OPT_FROM},
     FOR(CONSUME),
     "TIME     messages since then: 10:41, '2026-11-20 10:41:20', -5m, @SECONDS"},
    {{"filter", required_argument, NULL, OPT_FILTER},
     FOR(CONSUME),
     "N=VALUE  records with this member, as state=partial or flow.dst=10.0.3.1; repeatable"},
    {{"endpoint", required_argument, NULL, OPT_ENDPOINT},
     FOR_ALL & ~FOR_OWN & ~FOR(REPLAY) & ~FOR(IMPORT) & ~FOR(CONSUME),
     "H:P      where fabrictraced answers (" DEFAULT_ENDPOINT ", or FABRICTRACE_ENDPOINT)"},
    {{"token-file", required_argument, NULL, OPT_TOKEN_FILE},
     FOR_ALL & ~FOR_OWN & ~FOR(CONSUME),
     "FILE     with the token that fabrictraced wants (or FABRICTRACE_TOKEN_FILE)"},
    {{"ca", required_argument, NULL, OPT_CA},
     FOR_ALL & ~FOR_OWN & ~FOR(CONSUME),
     "FILE     authority of an endpoint https://HOST:PORT (the system's, or FABRICTRACE_CA)"},
    {{"json", no_argument, NULL, OPT_JSON},
     FOR_ALL & ~FOR(TOP) & ~FOR(LIVE) & ~FOR(RECORD) & ~FOR(REPLAY) & ~FOR(EXPORT) & ~FOR(IMPORT),
     "         records as JSON, one a line"},
    {{"help", no_argument, NULL, 'h'}, FOR_ALL, "         this help (-h)"},
    {{"version", no_argument, NULL, 'V'}, FOR_ALL, "         version (-V)"},
};

/* What an option takes where that is a closed list; of --kind the records' definition has it. */
static const struct {
    int option;
    unsigned commands;
    const char *values;
} choices[] = {
    {OPT_STATE, FOR(PATHS), "resolved partial multipath unresolved"},
    {OPT_STATE, FOR(QPS),
     "waiting paired reported no_peer several_peers several_addresses no_address no_port "
     "same_host peer_gone incomplete untimed itself"},
    {OPT_BY, FOR(MATRIX), "rank gpu host"},
    {OPT_POLICY, FOR(WHATIF), "observed ecmp learnt crc16 crc32 xor static greedy plan spray"},
    {OPT_OP, FOR(MATRIX), "AllReduce AllGather ReduceScatter Broadcast Reduce Send Recv"},
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

static enum ft_command command_of(const char *name)
{
    for (int i = FT_COMMAND_NONE + 1; i < FT_COMMANDS; i++)
        if (strcmp(ft_args_commands[i].name, name) == 0)
            return i;
    return FT_COMMAND_NONE;
}

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

static int parse_flow(struct ft_args *args, const char *text, FILE *err)
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

    if (ft_moment_parse(value, ft_wall_now(), &moment) < 0)
        return ft_args_complain(
            err, args->command,
            "--%s takes a time that is over: 10:41, 10:41:20, '2026-11-20 10:41:20', "
            "2026-11-20T10:41:20Z, -5m or @SECONDS; '%s' is not one",
            c == OPT_AT ? "at" : "from", value);
    *(c == OPT_AT ? &args->has_at : &args->has_from) = true;
    *(c == OPT_AT ? &args->at_ms : &args->from_ms) = (uint64_t)moment.ms;
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

static int parse_option(struct ft_args *args, int c, const char *value, FILE *err)
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
        args->columns = value;
        break;
    case OPT_OPERATIONS:
        args->operations = value;
        break;
    case OPT_HOST:
        args->host = value;
        break;
    case OPT_GROUP:
        args->group = value;
        break;
    case OPT_KIND:
        args->kind = value;
        break;
    case OPT_FOLLOW:
        args->follow = true;
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
        return parse_flow(args, value, err);
    case OPT_LOADS:
        return parse_loads(args, value, err);
    case OPT_LIMIT:
        if (ft_args_number(value, value + strlen(value), &args->limit) < 0 || args->limit == 0)
            return ft_args_complain(err, args->command, "--limit takes an integer from 1");
        break;
    case OPT_STATE:
        /* The daemon knows those of queue pairs. */
        if (args->command == FT_COMMAND_QPS)
            args->state = value;
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
            if (strcmp(states[i], value) == 0)
                args->state = states[i];
        if (!args->state)
            return ft_args_complain(err, args->command, "'%s' is not a state", value);
        break;
    case 'h':
        args->help = true;
        break;
    default:
        args->version = true;
    }
    return 0;
}

static bool takes(enum ft_command command, int c)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (options[i].option.val == c)
            return options[i].commands == FOR_ALL || options[i].commands & 1U << command;
    return false;
}

static const char *option_name(int c)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (options[i].option.val == c)
            return options[i].option.name;
    return "";
}

/* First pass: the command is the first word that is neither an option nor the value of one, and the
 * options' validity depends on it. */
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
    args->command = command_of(argv[optind]);
    if (args->command == FT_COMMAND_NONE)
        return ft_args_complain(err, FT_COMMAND_NONE, "there is no command '%s'", argv[optind]);
    return 0;
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
    args->file = argv[at];
    args->rest = argv + at + 1;
    args->rest_count = argc - at - 1;
    return 0;
}

/* What is not a flow is a name, which the daemon looks up; a link may be written as two words. */
static int parse_explain(struct ft_args *args, int words, char **argv, FILE *err)
{
    struct ft_ip ip;

    if (words < 2 || words > 3)
        return ft_args_complain(err, args->command,
                                "takes one flow, such as 10.0.1.1:49441-10.0.3.1, or one link "
                                "(leaf1/Ethernet51), group (leaf1/up) or job");
    if (words == 2 &&
        (ft_tuple_parse(argv[1], &args->flow) == 0 || ft_ip_parse(argv[1], &ip) == 0 || !*argv[1]))
        return parse_flow(args, argv[1], err);
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

static int parse_rest(struct ft_args *args, int argc, char **argv, FILE *err)
{
    int words = argc - optind;

    if (args->help || args->version)
        return 0;
    if (args->command == FT_COMMAND_NONE) {
        ft_args_help(FT_COMMAND_NONE, err);
        return EX_USAGE;
    }
    if (args->command == FT_COMMAND_EVENTS && args->follow && (args->sort || args->columns))
        return ft_args_complain(err, args->command,
                                "--follow prints lines, not a table with columns");
    if (args->command == FT_COMMAND_DIAGNOSE && !args->operations && words == 2) {
        args->job = argv[optind + 1];
        return 0;
    }
    if (args->command == FT_COMMAND_REPLAY)
        return parse_replay(args, argc, argv, err);
    if (args->follow && args->has_at)
        return ft_args_complain(err, args->command, "--follow begins now: it goes without --at");
    if (args->loads && args->has_at)
        return ft_args_complain(err, args->command, "--loads asks no daemon: it goes without --at");
    if (args->command == FT_COMMAND_PATHS && args->has_at &&
        (!args->has_flow || args->state || args->host || args->limit))
        return ft_args_complain(
            err, args->command,
            "--at goes with --flow, and with no other filter: of windows that are over "
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
    if (args->command == FT_COMMAND_PLAN && (args->apply || args->withdraw || args->dry_run))
        return ft_args_complain(err, args->command,
                                "--apply, --withdraw and --dry-run go with a job alone");
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
    if (args->command != FT_COMMAND_EXPLAIN)
        return words > 1
                   ? ft_args_complain(err, args->command, "does not take '%s'", argv[optind + 1])
                   : 0;
    return parse_explain(args, words, argv + optind, err);
}

/* NULL where it is not set, or empty. */
static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

int ft_args_parse(struct ft_args *args, int argc, char **argv, FILE *err)
{
    const char *env = environment("FABRICTRACE_ENDPOINT");
    struct option longs[OPTIONS + 1] = {0};
    int c, rc;

    memset(args, 0, sizeof(*args));
    args->stop_fd = -1;
    args->endpoint = env ? env : DEFAULT_ENDPOINT;
    args->token_file = environment("FABRICTRACE_TOKEN_FILE");
    args->ca = environment("FABRICTRACE_CA");
    args->brokers = environment("FABRICTRACE_BROKERS");
    if (!args->brokers)
        args->brokers = BROKERS;
    args->interval_s = INTERVAL_S;
    args->last_ms = LAST_S * UINT64_C(1000);
    args->output = OUTPUT;
    args->draws = DRAWS;
    args->pairs = 1;
    for (size_t i = 0; i < OPTIONS; i++)
        longs[i] = options[i].option;
    rc = find_command(args, argc, argv, longs, err);
    optind = 0;
    while (rc == 0 && (c = getopt_long(argc, argv,
                                       args->command == FT_COMMAND_REPLAY ? "+:hV" : ":hVo:", longs,
                                       NULL)) != -1) {
        if (c == '?')
            rc = ft_args_complain(err, args->command, "unknown option '%s'", argv[optind - 1]);
        else if (c == ':')
            rc =
                ft_args_complain(err, args->command, "option '%s' needs a value", argv[optind - 1]);
        else if (!takes(args->command, c))
            rc = ft_args_complain(err, args->command, "does not take --%s", option_name(c));
        else
            rc = parse_option(args, c, optarg, err);
    }
    return rc ? rc : parse_rest(args, argc, argv, err);
}

void ft_args_free(struct ft_args *args)
{
    free(args->loads);
}

void ft_args_help(enum ft_command command, FILE *out)
{
    if (command == FT_COMMAND_NONE) {
        fprintf(out, "Usage: fabrictrace COMMAND [OPTION]...\n"
                     "Which path every RoCEv2 flow takes, where flows collide, and whether that is "
                     "luck.\n\nCommands:\n");
        for (int i = FT_COMMAND_NONE + 1; i < FT_COMMANDS; i++)
            fprintf(out, "  %-11s %s\n", ft_args_commands[i].name, ft_args_commands[i].help);
        fprintf(out, "\nOptions of every command:\n");
    } else {
        fprintf(out, "Usage: fabrictrace %s%s%s [OPTION]...\n%s\n\nOptions:\n",
                ft_args_commands[command].name, *ft_args_commands[command].synopsis ? " " : "",
                ft_args_commands[command].synopsis, ft_args_commands[command].help);
    }
    for (size_t i = 0; i < OPTIONS; i++)
        if (options[i].commands == FOR_ALL || options[i].commands & 1U << command)
            fprintf(out, "  --%-9s %s\n", options[i].option.name, options[i].help);
    fprintf(out, "\nSee fabrictrace(1).\n");
}

static void offer(FILE *out, const char *prefix, const char *start, const char *dashes,
                  const char *name, const char *help)
{
    size_t len = strlen(prefix), lead = strlen(dashes);

    if (strncmp(dashes, prefix, lead < len ? lead : len) == 0 &&
        (len <= lead || strncmp(name, prefix + lead, len - lead) == 0))
        fprintf(out, "%s%s%s\t%s\n", start, dashes, name, help + strspn(help, " "));
}

static void offer_values(FILE *out, enum ft_command command, int option, const char *prefix,
                         const char *start)
{
    const ProtobufCEnumDescriptor *kinds = &fabrictrace__kind__descriptor;
    char name[FT_JSON_ENUM_BYTES];

    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        if (choices[i].option != option || !(choices[i].commands & 1U << command))
            continue;
        for (const char *value = choices[i].values; *value;) {
            size_t len = strcspn(value, " ");

            snprintf(name, sizeof(name), "%.*s", (int)len, value);
            offer(out, prefix, start, "", name, "");
            value += len + strspn(value + len, " ");
        }
    }
    for (unsigned i = 1; option == OPT_KIND && i < kinds->n_values; i++) {
        ft_json_enum_text(kinds, kinds->values[i].value, name);
        offer(out, prefix, start, "", name, "");
    }
}

/* The option of a word such as --state or --state=partial; OPTIONS when it is none. */
static size_t option_of(const char *word)
{
    size_t len, i = 0;

    if (strncmp(word, "--", 2) != 0)
        return OPTIONS;
    len = strcspn(word + 2, "=");
    while (i < OPTIONS && (strncmp(options[i].option.name, word + 2, len) != 0 ||
                           options[i].option.name[len] != '\0'))
        i++;
    return i;
}

void ft_args_complete(int count, char **words, FILE *out)
{
    const char *last = count > 0 ? words[count - 1] : "", *equals = strchr(last, '=');
    enum ft_command command = FT_COMMAND_NONE;
    size_t option = OPTIONS;

    for (int i = 0; i < count - 1; i++) {
        bool value = option < OPTIONS;

        option = value ? OPTIONS : option_of(words[i]);
        if (option < OPTIONS &&
            (options[option].option.has_arg == no_argument || strchr(words[i], '=')))
            option = OPTIONS;
        if (!value && words[i][0] != '-' && command == FT_COMMAND_NONE)
            command = command_of(words[i]);
    }
    if (option < OPTIONS) {
        offer_values(out, command, options[option].option.val, last, "");
    } else if (equals && option_of(last) < OPTIONS) {
        char *start = strndup(last, (size_t)(equals + 1 - last));

        if (start)
            offer_values(out, command, options[option_of(last)].option.val, equals + 1, start);
        free(start);
    } else if (last[0] == '-') {
        for (size_t i = 0; i < OPTIONS; i++)
            if (options[i].commands == FOR_ALL || options[i].commands & 1U << command)
                offer(out, last, "", "--", options[i].option.name, options[i].help);
    } else if (command == FT_COMMAND_NONE) {
        for (int i = FT_COMMAND_NONE + 1; i < FT_COMMANDS; i++)
            offer(out, last, "", "", ft_args_commands[i].name, ft_args_commands[i].help);
    }
}
