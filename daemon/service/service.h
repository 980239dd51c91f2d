// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_SERVICE_SERVICE_H
#define FT_DAEMON_SERVICE_SERVICE_H
/*
 * fabrictraced as a process, above all stages: what it opens (open.c, network.c), what its loop
 * calls (live.c), what it reads again (reload.c), and what runs in virtual time instead (replay.c).
 * daemon/daemon.c owns struct ft_daemon, opens one after the other and closes all. Functions that
 * return int give an exit code (sysexits(3)), after an error was logged. Thread: the loop's.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/api/live.h"
#include "daemon/api/view.h"
#include "daemon/group/role.h"
#include "daemon/incident/head.h"
#include "daemon/pipeline/arrivals.h"
#include "daemon/settings.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/config/program.h"
#include "lib/fabric/topology.h"
#include "lib/io/loop.h"

struct ft_group_reader;
struct ft_identities;
struct ft_keeper;
struct ft_launcher;
struct ft_loading;
struct ft_oracles;
struct ft_probers;
struct ft_recorder;

struct ft_daemon {
    struct ft_run *run;
    const struct ft_settings *settings;
    char *source_id; /* a copy: the pipeline keeps it over reloads */
    struct ft_loop *loop;
    struct ft_view view;              /* the stages, owned here */
    struct ft_live *live;             /* its sink's */
    struct ft_identities *identities; /* NULL: peers are who they say */
    struct ft_arrivals arrivals;
    struct ft_arrivals_tap arrivals_tap;
    struct ft_group_role role;
    struct ft_keeper *keeper;     /* NULL: the history is not kept */
    struct ft_oracles *oracles;   /* NULL: switches are not asked */
    struct ft_probers *probers;   /* NULL: agents are not asked to probe flows */
    struct ft_recorder *recorder; /* NULL: nothing is kept for an incident */
    struct ft_loading *loading;   /* NULL: no incident is replayed */
    struct ft_head head;          /* of the file of an incident */
    struct ft_settings started;   /* numbers as they were at the start: texts are not its own */
    struct ft_launcher *launcher; /* of diagnosis.exec, until its sink has it */
    struct ft_watch *tick, *slice;
    struct ft_mono close_begun; /* of the window that is being closed, or last was */
    struct ft_log_limit peer_limit, kafka_limit, batch_limit, sink_limit, exec_limit;
    uint64_t restarts; /* of the pipeline, logged */
    uint32_t ticks;
    bool advancing; /* what the account asks for is part of it */
};

/* The process that calls diagnosis.exec: before privileges are given up and threads begin. Its sink
 * comes last. Both do nothing without that setting. */
int ft_daemon_fork_launcher(struct ft_daemon *d);
int ft_daemon_open_exec(struct ft_daemon *d);

/* The publisher, the sinks that are configured, and that of event streams. */
int ft_daemon_open_sinks(struct ft_daemon *d);

/* The stages of a daemon that runs in virtual time (replay: records have the time), or live. seed:
 * of the join's tables. Both take the topology over. */
int ft_daemon_open_pipeline(struct ft_daemon *d, struct ft_topology *t, bool replay, uint64_t seed);
int ft_daemon_open_stages(struct ft_daemon *d, struct ft_topology *t);

/* struct ft_account's stages around the pipeline: the transport (live), then each sink. */
void ft_daemon_add_stages(void *arg, struct ft_account *account);

/* Where records come in, with the identities that peers must prove, and HTTP. */
int ft_daemon_open_network(struct ft_daemon *d);

/* Says that the daemon serves, and where. */
int ft_daemon_ready(const struct ft_daemon *d);

/* For SIGHUP. All of the configuration is read and checked; of it the topology, the certificates
 * and the log level are applied without a restart. Files of the sinks are opened anew in any case.
 */
void ft_daemon_reload(void *arg);

/* Until a signal. Takes the topology over. */
int ft_daemon_run_live(struct ft_daemon *d, struct ft_topology *t);

/* Records of a file in virtual time. Takes the topology over. */
int ft_daemon_run_replay(struct ft_daemon *d, struct ft_topology *t, const char *file);

/* The file of an incident in virtual time, then serves what it led to until a signal. */
int ft_daemon_run_incident(struct ft_daemon *d, const char *file);

#endif
