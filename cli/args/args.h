// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_ARGS_ARGS_H
#define FT_CLI_ARGS_ARGS_H
/*
 * The command line of fabrictrace(1): one table of options says which command takes which.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/output/matrix.h"
#include "lib/base/clock.h"
#include "lib/base/tuple.h"

#define FT_CLI_LOADS_MAX   4096
#define FT_CLI_FILTERS_MAX 16
#define FT_CLI_ORACLES_MAX 32

enum ft_command {
    FT_COMMAND_NONE,
    FT_COMMAND_PATHS,
    FT_COMMAND_LINKS,
    FT_COMMAND_IMBALANCE,
    FT_COMMAND_COLLISIONS,
    FT_COMMAND_EVENTS,
    FT_COMMAND_TOP,
    FT_COMMAND_EXPLAIN,
    FT_COMMAND_HISTORY,
    FT_COMMAND_TOPOLOGY,
    FT_COMMAND_MATRIX,
    FT_COMMAND_RANKS,
    FT_COMMAND_QPS,
    FT_COMMAND_HASH,
    FT_COMMAND_SPREAD,
    FT_COMMAND_RHYTHM,
    FT_COMMAND_PLANS,
    FT_COMMAND_MOVES,
    FT_COMMAND_PROBE,
    FT_COMMAND_PROBES,
    FT_COMMAND_DOCTOR,
    FT_COMMAND_DIAGNOSE,
    FT_COMMAND_LIVE,
    FT_COMMAND_ANALYZE,
    FT_COMMAND_RECORD,
    FT_COMMAND_REPLAY,
    FT_COMMAND_PLAN,
    FT_COMMAND_WHATIF,
    FT_COMMAND_EXPORT,
    FT_COMMAND_IMPORT,
    FT_COMMAND_CONSUME,
    FT_COMMANDS
};

/* Texts are borrowed from argv or the environment. */
struct ft_args {
    enum ft_command command;
    struct ft_wall now;     /* what times count back from */
    const char *endpoint;   /* HOST:PORT, also with http:// or https:// before it */
    const char *token_file; /* what the daemon requires (http_token_file); NULL */
    const char *ca;         /* of https, NULL: the system's */
    int stop_fd;            /* ends a request when it can be read; -1: nothing does */
    bool json;
    bool help; /* of the command; of the program when there is none */
    bool version;
    const char *state, *host, *group, *kind; /* filters, NULL: all */
    const char *switch_name;                 /* likewise */
    const char *severity;                    /* of events, at least; NULL: any */
    const char *verdict;                     /* of imbalance; NULL: any */
    const char *comm, *op;                   /* of matrix and ranks, NULL: all */
    enum ft_matrix_by by;
    bool messages, csv;
    bool export;             /* the topology as a file */
    const char *svg;         /* file of the heat map, NULL: none */
    const char *name, *port; /* of explain and history, instead of a flow; port: of a link in two
                              * words */
    bool follow;             /* events as they come */
    bool has_at;
    uint64_t at_ms; /* the window that holds this moment, instead of now */
    bool has_from;
    uint64_t from_ms; /* events, windows or messages since then */
    bool has_to;
    uint64_t to_ms; /* events or windows before then */
    bool has_flow;
    struct ft_tuple flow;
    uint64_t last_ms;           /* of record */
    const char *output;         /* likewise */
    const char *file;           /* of replay */
    char **rest;                /* likewise: another command and its options; of argv */
    int rest_count;             /* 0: none */
    const char *sflow;          /* of live: where it listens, NULL: the standard */
    const char *capture;        /* of analyze */
    bool serve;                 /* of analyze: the page on it afterwards */
    const char *topology;       /* the file; of live and analyze NULL: learnt */
    bool wide;                  /* no column is cut or left out */
    const char *sort, *columns; /* of a table, NULL: as it is */
    unsigned interval_s;        /* between two pictures of top, two requests of follow */
    uint64_t limit;             /* 0: the daemon's, or all */
    uint64_t *loads;            /* of --loads; freed by ft_args_free() */
    size_t load_count;
    const char *job;        /* of paths, events, a diagnosis, moves, plan, export; NULL: all */
    const char *operations; /* file of a diagnosis without a daemon */
    const char *incident;   /* file of a diagnosis of what was kept */
    const char *chakra, *network, *system, *groups; /* of whatif: traces and files of ASTRA-sim */
    const char *policies;                           /* of whatif, NULL: all */
    unsigned draws;
    const char *records;                     /* of whatif: what a daemon wrote */
    uint32_t pairs, spray, add_spines;       /* of whatif */
    uint64_t fabric_bps;                     /* likewise; 0: as it is */
    const char *link_speeds;                 /* likewise; NULL: as they are */
    bool unaware;                            /* the network that knows no congestion */
    const char *flows, *previous, *failed;   /* of plan and whatif: files, links */
    const char *apply, *withdraw;            /* of a job's plan: folders */
    bool dry_run;                            /* likewise: nothing is written */
    const char *oracles[FT_CLI_ORACLES_MAX]; /* likewise: PATTERN=COMMAND */
    size_t oracle_count;
    const char *socket;                      /* of probe: the agent's, NULL: the standard */
    uint64_t dscp, dst_qp;                   /* likewise */
    bool has_dst_qp;                         /* else the one that the daemon knows */
    const char *topic, *brokers;             /* of consume */
    const char *properties;                  /* its file of librdkafka's settings, NULL */
    const char *filters[FT_CLI_FILTERS_MAX]; /* NAME=VALUE */
    size_t filter_count;
};

/* Times count back from now. 0, or EX_USAGE after a complaint to err, or EX_OSERR without memory.
 */
int ft_args_parse(struct ft_args *args, int argc, char **argv, struct ft_wall now, FILE *err);
void ft_args_free(struct ft_args *args);

/* Help of one command, or of the program. */
void ft_args_help(enum ft_command command, FILE *out);

/* For shells, the hidden option --complete: what may stand for the last of these words, which is
 * the beginning of one: "NAME<tab>HELP" a line. */
void ft_args_complete(int count, char **words, FILE *out);

#endif
