// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/args_options.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/json.h"

#define FOR(command) (1U << FT_COMMAND_##command)
#define FOR_ALL      (~0U)
/* Commands that the history has answers for. */
#define FOR_PAST (FOR(PATHS) | FOR(LINKS) | FOR(IMBALANCE) | FOR(COLLISIONS) | FOR(EVENTS))
/* Commands that start a daemon of their own and ask none. */
#define FOR_OWN (FOR(LIVE) | FOR(ANALYZE))
#define FOR_TABLES                                                                                 \
    (FOR(PATHS) | FOR(LINKS) | FOR(IMBALANCE) | FOR(EVENTS) | FOR(RANKS) | FOR(QPS) | FOR(MOVES) | \
     FOR(HISTORY) | FOR(CONSUME))
/* Answers of the daemon as text, which a narrow terminal makes narrower. */
#define FOR_WIDE                                                                                   \
    (FOR_TABLES | FOR(COLLISIONS) | FOR(EXPLAIN) | FOR(TOPOLOGY) | FOR(MATRIX) | FOR(HASH) |       \
     FOR(SPREAD) | FOR(RHYTHM) | FOR(PLANS) | FOR(PROBES) | FOR(DOCTOR) | FOR(DIAGNOSE))

/* Which command takes which option. */
static const struct {
    struct option option;
    unsigned commands;
    const char *help;
} options[] = {
    {{"state", required_argument, NULL, OPT_STATE},
     FOR(PATHS) | FOR(QPS),
     "STATE    in this state: resolved, partial, multipath, unresolved; of queue pairs: paired, "
     "reported, no_peer, several_peers ..."},
    {{"host", required_argument, NULL, OPT_HOST},
     FOR(PATHS) | FOR(QPS) | FOR(SPREAD) | FOR(EVENTS) | FOR(COLLISIONS) | FOR(RANKS),
     "HOST     flows from or to this host, queue pairs, ranks or events of it"},
    {{"switch", required_argument, NULL, OPT_SWITCH},
     FOR(PATHS) | FOR(LINKS) | FOR(EVENTS) | FOR(COLLISIONS),
     "SWITCH   flows through this switch, links or events of it"},
    {{"job", required_argument, NULL, OPT_JOB},
     FOR(PATHS) | FOR(EVENTS) | FOR(COLLISIONS) | FOR(RANKS) | FOR(QPS) | FOR(MATRIX) |
         FOR(SPREAD) | FOR(RHYTHM),
     "JOB      what is of this job; of events and collisions those that name a flow of it"},
    {{"flow", required_argument, NULL, OPT_FLOW}, FOR(PATHS), "FLOW     this flow"},
    {{"limit", required_argument, NULL, OPT_LIMIT},
     FOR(PATHS) | FOR(QPS) | FOR(SPREAD) | FOR(CONSUME) | FOR(EVENTS) | FOR(LINKS) |
         FOR(IMBALANCE) | FOR(HISTORY),
     "N        at most N of them; of events and windows the newest"},
    {{"group", required_argument, NULL, OPT_GROUP},
     FOR(LINKS) | FOR(SPREAD) | FOR(IMBALANCE),
     "GROUP    of one ECMP group, such as leaf1/up"},
    {{"verdict", required_argument, NULL, OPT_VERDICT},
     FOR(IMBALANCE),
     "VERDICT  with this verdict: fault, uneven, even, idle"},
    {{"kind", required_argument, NULL, OPT_KIND},
     FOR(EVENTS),
     "KIND     events of this kind, such as link_down"},
    {{"severity", required_argument, NULL, OPT_SEVERITY},
     FOR(EVENTS),
     "LEVEL    events that are at least so grave: info, warning, critical"},
    {{"since", required_argument, NULL, OPT_SINCE},
     FOR(EVENTS) | FOR(HISTORY),
     "TIME     windows, or events, since then, these also when they are over: 1h, 10:41, "
     "'2026-11-20 10:41:20'"},
    {{"until", required_argument, NULL, OPT_UNTIL},
     FOR(EVENTS) | FOR(HISTORY),
     "TIME     with --since: before then"},
    {{"follow", no_argument, NULL, OPT_FOLLOW},
     FOR(EVENTS) | FOR(CONSUME),
     "         continue, and print events as they begin and end, or records as they come"},
    {{"interval", required_argument, NULL, OPT_INTERVAL},
     FOR(TOP) | FOR(EVENTS) | FOR(CONSUME),
     "SECONDS  between two updates (2)"},
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
     "FILE     a table of operations as comma-separated values (-: standard input), or a folder "
     "of dumps of PyTorch's Flight Recorder"},
    {{"replay", required_argument, NULL, OPT_REPLAY},
     FOR(DIAGNOSE),
     "FILE     what 'fabrictrace record' wrote, in place of a daemon"},
    {{"wide", no_argument, NULL, OPT_WIDE},
     FOR_WIDE,
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
     "         then serve the page and the API with the result, until Ctrl-C"},
    {{"at", required_argument, NULL, OPT_AT},
     FOR_PAST | FOR(WHATIF),
     "TIME     in the window of that time: 5m, 10:41, '2026-11-20 10:41:20', @SECONDS; paths takes "
     "it with --flow"},
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
    {{"oracle", required_argument, NULL, OPT_ORACLE},
     FOR(PLAN),
     "P=CMD    of a job: asks switches whose name fits P by which port they send flows "
     "(fabrictrace-oracle(7)); repeatable"},
    {{"socket", required_argument, NULL, OPT_SOCKET},
     FOR(PROBE),
     "PATH     probe.socket of this host's agent (" FT_RUNSTATEDIR "/probe.sock)"},
    {{"dscp", required_argument, NULL, OPT_DSCP}, FOR(PROBE), "N        DSCP of the flow (0)"},
    {{"qp", required_argument, NULL, OPT_QP},
     FOR(PROBE),
     "N        its destination queue pair (the one that the daemon knows)"},
    {{"policy", required_argument, NULL, OPT_POLICY},
     FOR(WHATIF),
     "NAME,... observed, ecmp, learnt, crc16, crc32, xor, static, rail, greedy, plan, spray, "
     "flowlet"},
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
     "N        additional spines, each wired like an existing one"},
    {{"fabric-speed", required_argument, NULL, OPT_FABRIC_SPEED},
     FOR(WHATIF),
     "BPS      speed of all links between switches"},
    {{"link-speed", required_argument, NULL, OPT_LINK_SPEED},
     FOR(WHATIF),
     "LINK=BPS,... speeds of single links between switches"},
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
     "H:P,...  brokers of Kafka (" FT_ARGS_BROKERS ", or FABRICTRACE_BROKERS)"},
    {{"properties", required_argument, NULL, OPT_PROPERTIES},
     FOR(CONSUME),
     "FILE     settings of librdkafka, one NAME=VALUE a line: security.protocol=ssl"},
    {{"from", required_argument, NULL, OPT_FROM},
     FOR(CONSUME),
     "TIME     messages since then: 5m, 10:41, '2026-11-20 10:41:20', @SECONDS"},
    {{"filter", required_argument, NULL, OPT_FILTER},
     FOR(CONSUME),
     "N=VALUE  records with this member, as state=partial or flow.dst=10.0.3.1; repeatable"},
    {{"endpoint", required_argument, NULL, OPT_ENDPOINT},
     FOR_ALL & ~FOR_OWN & ~FOR(REPLAY) & ~FOR(IMPORT) & ~FOR(CONSUME),
     "H:P      where fabrictraced answers (" FT_ARGS_ENDPOINT ", or FABRICTRACE_ENDPOINT)"},
    {{"token-file", required_argument, NULL, OPT_TOKEN_FILE},
     FOR_ALL & ~FOR_OWN & ~FOR(CONSUME),
     "FILE     with the token that fabrictraced requires (or FABRICTRACE_TOKEN_FILE)"},
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
    {OPT_SEVERITY, FOR(EVENTS), "info warning critical"},
    {OPT_VERDICT, FOR(IMBALANCE), "fault uneven even idle"},
    {OPT_BY, FOR(MATRIX), "rank gpu host"},
    {OPT_POLICY, FOR(WHATIF),
     "observed ecmp learnt crc16 crc32 xor static rail greedy plan spray flowlet"},
    {OPT_OP, FOR(MATRIX), "AllReduce AllGather ReduceScatter Broadcast Reduce Send Recv"},
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

const struct option *ft_args_longs(void)
{
    static struct option longs[OPTIONS + 1]; /* the last one stays empty */

    for (size_t i = 0; i < OPTIONS; i++)
        longs[i] = options[i].option;
    return longs;
}

bool ft_args_takes(enum ft_command command, int c)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (options[i].option.val == c)
            return options[i].commands == FOR_ALL || options[i].commands & 1U << command;
    return false;
}

const char *ft_args_option_name(int c)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (options[i].option.val == c)
            return options[i].option.name;
    return "";
}

size_t ft_args_options_like(const char *name, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < OPTIONS; i++)
        count += strncmp(options[i].option.name, name, len) == 0;
    return count;
}

void ft_args_help(enum ft_command command, FILE *out)
{
    if (command == FT_COMMAND_NONE) {
        fputs("Usage: fabrictrace COMMAND [OPTION]...\n", out);
        ft_args_help_text(out,
                          "Which path every RoCEv2 flow takes, where flows collide, and whether "
                          "that is luck.");
        fputs("\nCommands:\n", out);
        ft_args_help_commands(out);
        fputs("\nOptions of every command:\n", out);
    } else {
        ft_args_help_usage(out, ft_args_commands[command].name, ft_args_commands[command].synopsis);
        ft_args_help_text(out, ft_args_commands[command].help);
        fputs("\nOptions:\n", out);
    }
    for (size_t i = 0; i < OPTIONS; i++) {
        const char *text = options[i].help;
        size_t value = strcspn(text, " "); /* the name of its value stands before its help */
        char label[64];

        if (options[i].commands != FOR_ALL && !(options[i].commands & 1U << command))
            continue;
        snprintf(label, sizeof(label), "  --%s %.*s", options[i].option.name, (int)value, text);
        ft_args_help_item(out, label, text + value + strspn(text + value, " "));
    }
    fprintf(out, "\nSee fabrictrace(1), fabrictrace-troubleshooting(7).\n");
}

const char *ft_args_choices(enum ft_command command, int option)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
        if (choices[i].option == option && choices[i].commands & 1U << command)
            return choices[i].values;
    return NULL;
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
    const char *value = ft_args_choices(command, option);
    char name[FT_JSON_ENUM_BYTES];

    while (value && *value) {
        size_t len = strcspn(value, " ");

        snprintf(name, sizeof(name), "%.*s", (int)len, value);
        offer(out, prefix, start, "", name, "");
        value += len + strspn(value + len, " ");
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
            command = ft_args_command_of(words[i]);
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
        for (size_t i = 0; ft_args_command_at(i) != FT_COMMAND_NONE; i++) {
            const struct ft_args_command *c = &ft_args_commands[ft_args_command_at(i)];

            offer(out, last, "", "", c->name, c->help);
        }
    }
}
