// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_ARGS_ARGS_OPTIONS_H
#define FT_CLI_ARGS_ARGS_OPTIONS_H
/*
 * Options and commands of the command line by number: what args.c (the command line), args_table.c
 * (options, help, completion), args_values.c and args_sim.c (values of options), args_commands.c
 * and args_help.c (what a person reads) share. Nobody else includes this.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/args/args.h"

enum {
    OPT_ENDPOINT = 256,
    OPT_JSON,
    OPT_STATE,
    OPT_HOST,
    OPT_FLOW,
    OPT_LIMIT,
    OPT_GROUP,
    OPT_VERDICT,
    OPT_KIND,
    OPT_FOLLOW,
    OPT_INTERVAL,
    OPT_LOADS,
    OPT_COMM,
    OPT_OP,
    OPT_BY,
    OPT_BYTES,
    OPT_MESSAGES,
    OPT_CSV,
    OPT_SVG,
    OPT_EXPORT,
    OPT_WIDE,
    OPT_SORT,
    OPT_COLUMNS,
    OPT_OPERATIONS,
    OPT_REPLAY,
    OPT_SFLOW,
    OPT_TOPOLOGY,
    OPT_LAST,
    OPT_SERVE,
    OPT_AT,
    OPT_TOKEN_FILE,
    OPT_CA,
    OPT_FLOWS,
    OPT_PREVIOUS,
    OPT_FAILED,
    OPT_APPLY,
    OPT_WITHDRAW,
    OPT_DRY_RUN,
    OPT_ORACLE,
    OPT_POLICY,
    OPT_DRAWS,
    OPT_CHAKRA,
    OPT_NETWORK,
    OPT_SYSTEM,
    OPT_GROUPS,
    OPT_UNAWARE,
    OPT_RECORDS,
    OPT_PAIRS,
    OPT_SPRAY,
    OPT_ADD_SPINES,
    OPT_FABRIC_SPEED,
    OPT_LINK_SPEED,
    OPT_SIM_LAST = OPT_LINK_SPEED,
    OPT_SOCKET,
    OPT_DSCP,
    OPT_QP,
    OPT_BROKERS,
    OPT_PROPERTIES,
    OPT_FROM,
    OPT_SINCE,
    OPT_UNTIL,
    OPT_SWITCH,
    OPT_JOB,
    OPT_FILTER,
    OPT_SEVERITY
};

/* Where the daemon and the brokers are unless said otherwise. */
#define FT_ARGS_ENDPOINT "127.0.0.1:9478"
#define FT_ARGS_BROKERS  "localhost:9092"

/* The commands, for help and complaints; that of FT_COMMAND_NONE is empty. */
struct ft_args_command {
    const char *name;
    const char *synopsis;
    const char *help;
};
extern const struct ft_args_command ft_args_commands[FT_COMMANDS];

/* The parts of the help, wrapped for the terminal: a sentence, an option, which labels may be too
 * long for, the line of a command's usage, all commands in groups. */
void ft_args_help_text(FILE *out, const char *text);
void ft_args_help_item(FILE *out, const char *label, const char *text);
void ft_args_help_usage(FILE *out, const char *name, const char *synopsis);
void ft_args_help_commands(FILE *out);

/* The commands in the order of the help; FT_COMMAND_NONE behind the last. */
enum ft_command ft_args_command_at(size_t position);

/* EX_USAGE, after a complaint with the name that is near. */
int ft_args_no_command(const char *name, FILE *err);

/* What an option of a command takes where that is a closed list, separated by blanks; NULL. */
const char *ft_args_choices(enum ft_command command, int option);

/* FT_COMMAND_NONE when no command has this name. */
enum ft_command ft_args_command_of(const char *name);

/* All options, for getopt_long(3): a static array. */
const struct option *ft_args_longs(void);
bool ft_args_takes(enum ft_command command, int c);
const char *ft_args_option_name(int c);

/* How many options' names begin so. */
size_t ft_args_options_like(const char *name, size_t len);

/* One option that the command takes, with its value. 0, EX_USAGE or EX_OSERR. */
int ft_args_option(struct ft_args *args, int c, const char *value, FILE *err);
int ft_args_flow(struct ft_args *args, const char *text, FILE *err);

/* EX_USAGE, after a complaint that names the command. */
int ft_args_complain(FILE *err, enum ft_command command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An integer that ends at `end`. -EINVAL. */
int ft_args_number(const char *text, const char *end, uint64_t *out);

/* An option from OPT_FLOWS to OPT_SIM_LAST: of plans and what-if. 0, or EX_USAGE. */
int ft_args_sim_option(struct ft_args *args, int c, const char *value, FILE *err);

#endif
