// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/args/args_options.h"

const struct ft_args_command ft_args_commands[FT_COMMANDS] = {
    [FT_COMMAND_PATHS] =
        {"paths",
         "[--state STATE] [--host HOST] [--switch SWITCH] [--job JOB] [--flow FLOW] [--limit N]",
         "the leaf-spine path of every flow, now"},
    [FT_COMMAND_LINKS] = {"links", "[--group GROUP] [--switch SWITCH] [--limit N]",
                          "load of every directed link, last window"},
    [FT_COMMAND_IMBALANCE] = {"imbalance",
                              "[--group GROUP] [--verdict VERDICT] [--limit N] | --loads N,N,...",
                              "how uneven each ECMP group is, and whether chance explains it"},
    [FT_COMMAND_COLLISIONS] = {"collisions", "[--host HOST] [--switch SWITCH] [--job JOB]",
                               "links that carry several elephants while a sibling has room"},
    [FT_COMMAND_EVENTS] =
        {"events",
         "[--severity LEVEL] [--kind KIND] [--host HOST] [--switch SWITCH] [--job JOB] "
         "[--limit N] [--since TIME] [--until TIME] | --follow [--interval SECONDS]",
         "what is wrong now, or was: collisions, links down, silent exporters ..."},
    [FT_COMMAND_TOP] = {"top", "[--interval SECONDS]",
                        "the fabric at a glance, kept fresh: events, groups, fullest links"},
    [FT_COMMAND_EXPLAIN] = {"explain", "FLOW | LINK | GROUP | JOB | HOST | SWITCH",
                            "one flow, link, group, job, host or switch: all that is known of it"},
    [FT_COMMAND_HISTORY] = {"history",
                            "LINK | GROUP | FLOW [--since TIME] [--until TIME] [--limit N]",
                            "one link, group or elephant, window by window: since when?"},
    [FT_COMMAND_TOPOLOGY] = {"topology", "[--export]",
                             "switches, links and hosts as the daemon knows them"},
    [FT_COMMAND_MATRIX] = {"matrix",
                           "[--job JOB] [--comm ID] [--op OP] [--by WHAT] [--bytes | --messages] "
                           "[--csv | --svg FILE]",
                           "traffic between ranks of training jobs, compared with the formula"},
    [FT_COMMAND_RANKS] = {"ranks", "[--job JOB] [--host HOST] [--comm ID]",
                          "each rank's last operation, its slowest peer and the link under it"},
    [FT_COMMAND_QPS] = {"qps", "[--state STATE] [--host HOST] [--job JOB] [--limit N]",
                        "queue pairs of every host, and their peers"},
    [FT_COMMAND_HASH] = {"hash", "",
                         "how each switch chooses among equal-cost links, learnt from flows"},
    [FT_COMMAND_SPREAD] = {"spread", "[--host HOST] [--job JOB] [--group GROUP] [--limit N]",
                           "how flows, connections and jobs spread over equal-cost links"},
    [FT_COMMAND_RHYTHM] = {"rhythm", "[--job JOB]",
                           "each job's period and share of exchange, by its flows alone"},
    [FT_COMMAND_PLANS] = {"plans", "",
                          "plans of source ports that jobs use, and whether samples confirm them"},
    [FT_COMMAND_MOVES] = {"moves", "[JOB]",
                          "queue pairs that plans gave a port: the path before, and the new one"},
    [FT_COMMAND_PROBE] = {"probe", "FLOW [--dscp N] [--qp N] [--socket PATH]",
                          "which switches a flow of this host crosses, by packets like its own"},
    [FT_COMMAND_PROBES] = {"probes", "", "flows that were probed, and what is not known by it"},
    [FT_COMMAND_DOCTOR] = {"doctor", "", "what the daemon does not see, and what to do"},
    [FT_COMMAND_DIAGNOSE] = {"diagnose", "[JOB] [--replay FILE] | --operations FILE",
                             "which rank of a job hangs or is slow, and whether communication is"},
    [FT_COMMAND_ANALYZE] = {"analyze", "CAPTURE [--topology FILE] [--serve]",
                            "a capture of sFlow: paths, imbalance, collisions, events in it"},
    [FT_COMMAND_LIVE] = {"live", "[--sflow ADDRESS:PORT] [--topology FILE]",
                         "poller, daemon and page with one command, until Ctrl-C"},
    [FT_COMMAND_RECORD] = {"record", "[--last TIME] [--output FILE]",
                           "recent input and output of the daemon, as a file for replay"},
    [FT_COMMAND_REPLAY] = {"replay", "FILE [COMMAND [OPTION]...]",
                           "the page, or one command, with the data of such a file"},
    [FT_COMMAND_PLAN] = {"plan",
                         "JOB [--failed LINK,...] [--oracle PATTERN=COMMAND]... [--apply FOLDER | "
                         "--withdraw FOLDER] "
                         "[--dry-run] | --topology FILE --flows FILE "
                         "[--previous FILE] [--failed LINK,...]",
                         "source ports for a job, or paths for flows, that collide the least"},
    [FT_COMMAND_WHATIF] = {"whatif",
                           "[--policy NAME,...] [--topology FILE --records FILE | --topology FILE "
                           "--flows FILE | --chakra PREFIX --network FILE --system FILE]",
                           "what other routing would do to the traffic, or a network to a trace"},
    [FT_COMMAND_EXPORT] = {"export",
                           "chakra --output PREFIX [JOB] [--topology FILE --records FILE]",
                           "captured collectives as Chakra traces, which ASTRA-sim runs"},
    [FT_COMMAND_IMPORT] = {"import", "chakra PREFIX --topology FILE",
                           "Chakra traces as flows (CSV) for whatif and plan"},
    [FT_COMMAND_CONSUME] = {"consume", "TOPIC [--from TIME] [--filter NAME=VALUE]... [--follow]",
                            "the records of a Kafka topic"},
};

enum ft_command ft_args_command_of(const char *name)
{
    for (int i = FT_COMMAND_NONE + 1; i < FT_COMMANDS; i++)
        if (strcmp(ft_args_commands[i].name, name) == 0)
            return (enum ft_command)i;
    return FT_COMMAND_NONE;
}

int ft_args_complain(FILE *err, enum ft_command command, const char *format, ...)
{
    const char *name = command == FT_COMMAND_NONE ? "" : ft_args_commands[command].name;
    va_list args;

    fprintf(err, "fabrictrace%s%s: ", *name ? " " : "", name);
    va_start(args, format);
    vfprintf(err, format, args);
    va_end(args);
    fprintf(err, "\nTry: fabrictrace %s%s--help\n", name, *name ? " " : "");
    return EX_USAGE;
}

int ft_args_number(const char *text, const char *end, uint64_t *out)
{
    char *stop;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    *out = strtoull(text, &stop, 10);
    return errno || stop != end ? -EINVAL : 0;
}
