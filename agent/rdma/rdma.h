// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_RDMA_RDMA_H
#define FT_AGENT_RDMA_RDMA_H
/*
 * The RDMA source: asks the kernel for devices, queue pairs and connections on a schedule, keeps
 * the table of them, and reports the counters of every port. Where the kernel reports devices that
 * come and go they are taken up at once, else with the next round. Needs no privilege;
 * CAP_SYS_PTRACE lets it read the jobs and, when asked to query, the destinations of other users'
 * queue pairs.
 * Owner: the caller. Thread: the loop's; a round lasts as long as the kernel writes its lists.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/capture/flows.h"
#include "agent/rdma/owners.h"
#include "agent/rdma/ports.h"
#include "agent/rdma/table.h"
#include "lib/base/account.h"
#include "lib/base/clock.h"
#include "lib/io/loop.h"
#include "proto/usid.h"

/* Strings are borrowed. */
struct ft_rdma_config {
    const char *sysfs; /* "/sys/class/infiniband" but in tests */
    bool verbs;        /* libibverbs is asked first: sysfs is the real one */
    const char *proc;  /* "/proc" but in tests */
    const char *job_variable;
    char *const *devices; /* names of those to look at; none: all */
    size_t device_count;
    bool query;
    uint64_t seed;
    struct ft_usid_blocks blocks; /* of destinations that are named by what stays of them */
    size_t qps_max;
    int64_t interval_ns; /* between two rounds */
    int64_t counters_ns;
    int64_t refresh_ns;
    struct ft_loop *loop; /* where notices of the kernel come in; NULL: they are not listened to */
};

/* Queue pairs of one port, as in ft_rdma_table_ends(). Lives until the callback returns. */
struct ft_rdma_ends_report {
    struct ft_wall time;
    int64_t interval_ns; /* until all are reported again */
    const char *device;
    const struct ft_rdma_device_port *device_port;
    bool computed; /* the driver's source ports follow the kernel's formula */
    const struct ft_rdma_end *ends;
    const struct ft_owner *owners[FT_RDMA_ENDS_MAX]; /* NULL: not known */
    size_t count;
    uint64_t listed; /* connected ones of the host */
};

struct ft_rdma_hooks {
    void (*flow)(void *arg, const struct ft_flow_report *report, const char *netdev);
    void (*port)(void *arg, const struct ft_rdma_port_report *report);
    void (*ends)(void *arg, const struct ft_rdma_ends_report *report); /* NULL: not used */
    /* A device came, went or changed: the next ft_rdma_poll() makes a round, due or not. */
    void (*changed)(void *arg);
    void *arg;
};

/* What the source sees now, for people. problem: why it sees nothing or less than it could, "". */
struct ft_rdma_status {
    size_t devices;
    struct ft_rdma_table_stats table;
    uint64_t rounds;
    uint64_t round_ns; /* spent in all rounds */
    uint64_t messages, malformed;
    uint64_t lists_cut; /* changed while they were written */
    uint64_t requests_failed;
    uint64_t queries, queries_failed, queries_ambiguous;
    bool has_contexts; /* a device reports raw contexts to privileged programs: mlx5 */
    bool no_context;   /* and refused */
    struct ft_owners_stats owners;
    bool by_verbs; /* the last GID table was read by libibverbs */
    bool notified; /* the kernel reports devices that come and go */
    char problem[160];
};

#define FT_RDMA_VIEW_INTERFACES 8

/* A port as others see it. Lives until the next round. */
struct ft_rdma_port_view {
    const char *device;
    uint32_t port;
    const char *driver; /* NULL: unknown */
    bool computed;      /* its source ports follow the kernel's formula */
    size_t interface_count;
    const char *interfaces[FT_RDMA_VIEW_INTERFACES]; /* of its addresses, each once */
};

struct ft_rdma;

/* NULL without memory. The hooks are called from ft_rdma_report(), changed from the loop. */
struct ft_rdma *ft_rdma_new(const struct ft_rdma_config *config, const struct ft_rdma_hooks *hooks);
void ft_rdma_free(struct ft_rdma *rdma);

/* Takes over new intervals, the devices to look at and the job's variable; the rest stays. */
void ft_rdma_configure(struct ft_rdma *rdma, const struct ft_rdma_config *config);

/* Makes a round when it is due, or when the kernel reported a change. Call before captured flows
 * are reported. */
void ft_rdma_poll(struct ft_rdma *rdma, struct ft_mono now, struct ft_wall wall);

/* Adds to a captured flow's report what is known of the queue pair behind it. The strings live
 * until the next round. */
void ft_rdma_annotate(struct ft_rdma *rdma, struct ft_flow_report *report, struct ft_mono now);

/* Reports flows that capture did not see, and counters that are due. */
void ft_rdma_report(struct ft_rdma *rdma, struct ft_mono now, struct ft_wall wall);

/* Adds the stages "rdma_messages" and "rdma_rows". */
void ft_rdma_account(const struct ft_rdma *rdma, struct ft_account *account);
void ft_rdma_status(const struct ft_rdma *rdma, struct ft_rdma_status *status);

/* The status' problem, for as long as the source lives. */
const char *ft_rdma_problem(const struct ft_rdma *rdma);

/* The i-th port with what the last look found; false past the last. */
bool ft_rdma_port_at(const struct ft_rdma *rdma, size_t i, struct ft_rdma_port_view *view);

/* "mlx5", "rxe", ...; NULL for a driver that nobody here knows. */
const char *ft_rdma_driver_name(uint32_t driver);

#endif
