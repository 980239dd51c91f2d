// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_NCCL_ABI_H
#define FT_AGENT_NCCL_ABI_H
/*
 * The binary interface between NCCL and a profiler plugin, versions 4 (NCCL 2.27), 5 (2.28) and 6
 * (2.29), as far as this plugin reads it.
 *
 * Written from NCCL's description of the interface, under names of our own. Only layout and numbers
 * count: NCCL looks a table up by the name of its symbol. The descriptor of version 4 is smaller
 * and has a narrow type; from `parent` on, what is named here lies at the same offset in all three.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FT_NCCL_SUCCESS  0
#define FT_NCCL_INTERNAL 3 /* an init that returns it disables the plugin; nothing else does */

/* Kinds of events: bits of the activation mask, one of them in a descriptor. */
enum {
    FT_NCCL_GROUP = 1 << 0,
    FT_NCCL_COLL = 1 << 1,
    FT_NCCL_P2P = 1 << 2,
    FT_NCCL_PROXY_OP = 1 << 3,
    FT_NCCL_PROXY_STEP = 1 << 4,
    FT_NCCL_PROXY_CTRL = 1 << 5,
    FT_NCCL_KERNEL_CH = 1 << 6,
    FT_NCCL_NET_PLUGIN = 1 << 7,
    FT_NCCL_KINDS = (1 << 15) - 1, /* all of version 6 */
};

/* States that are kept. */
enum {
    FT_NCCL_STEP_SEND_GPU_WAIT = 8,   /* the buffer is the GPU's to fill */
    FT_NCCL_STEP_SEND_WAIT = 9,       /* handed to the network; transfer bytes known */
    FT_NCCL_STEP_RECV_WAIT = 10,      /* receive posted */
    FT_NCCL_STEP_RECV_FLUSH = 11,     /* received; transfer bytes known */
    FT_NCCL_STEP_RECV_GPU_WAIT = 12,  /* the GPU's to take */
    FT_NCCL_PROXY_IN_PROGRESS = 19,   /* the proxy has begun with the operation */
    FT_NCCL_STEP_SEND_PEER_WAIT = 20, /* the peer has no room; reported at every poll */
    FT_NCCL_KERNEL_CH_STOP = 22,
};

/* IB's queue-pair event of the network plugin: id, and what its data points at. */
#define FT_NCCL_NET_IB_QP ((INT64_C(1) << 16) | 1)

struct ft_nccl_ib_qp {
    uint8_t type;
    int device;
    uint64_t wr_id;
    int opcode;
    int qp_number;
    size_t length_bytes;
};

struct ft_nccl_coll {
    uint64_t sequence;
    const char *func;
    const void *send;
    void *receive;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algo;
    const char *proto;
};

struct ft_nccl_p2p {
    const char *func;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
};

struct ft_nccl_proxy_op {
    pid_t pid; /* of the process that the parent's address belongs to */
    uint8_t channel;
    int peer;
    int steps;
    int chunk_bytes;
    int is_send;
};

/* What an event is of, by its kind. Versions 5 and 6 are 8 bytes longer: a parent group follows. */
union ft_nccl_subject {
    struct ft_nccl_coll coll;
    struct ft_nccl_p2p p2p;
    struct ft_nccl_proxy_op proxy_op;
    struct {
        int step;
    } proxy_step;
    struct {
        uint8_t channel;
        uint64_t gpu_time_ns;
    } kernel_ch;
    struct {
        int64_t id;
        void *data; /* may lie on the caller's stack: good during the call only */
    } net_plugin;
};

struct ft_nccl_event_v4 {
    uint8_t type;
    void *parent;
    int rank;
    union ft_nccl_subject u;
};

struct ft_nccl_event_v5 {
    uint64_t type;
    void *parent;
    int rank;
    union ft_nccl_subject u;
    void *parent_group;
};

union ft_nccl_state {
    struct {
        size_t bytes;
    } proxy_step;
    struct {
        uint64_t gpu_time_ns;
    } kernel_ch;
    void *widest;
};

_Static_assert(sizeof(struct ft_nccl_event_v4) == 104, "descriptor of version 4");
_Static_assert(sizeof(struct ft_nccl_event_v5) == 112, "descriptor of versions 5 and 6");
_Static_assert(offsetof(struct ft_nccl_event_v4, parent) == 8, "parent");
_Static_assert(offsetof(struct ft_nccl_event_v5, parent) == 8, "parent");
_Static_assert(offsetof(struct ft_nccl_event_v4, rank) == 16, "rank");
_Static_assert(offsetof(struct ft_nccl_event_v4, u) == 24, "union");
_Static_assert(offsetof(struct ft_nccl_event_v5, u) == 24, "union");
_Static_assert(sizeof(union ft_nccl_subject) == 80, "union");
_Static_assert(offsetof(struct ft_nccl_coll, channels) == 56, "channels of a collective");
_Static_assert(offsetof(struct ft_nccl_coll, proto) == 72, "protocol of a collective");
_Static_assert(offsetof(struct ft_nccl_p2p, peer) == 32, "peer of a point-to-point operation");
_Static_assert(sizeof(struct ft_nccl_proxy_op) == 24, "proxy operation");
_Static_assert(sizeof(struct ft_nccl_ib_qp) == 32, "queue pair event");

typedef void (*ft_nccl_logger)(int level, unsigned long flags, const char *file, int line,
                               const char *format, ...);

struct ft_nccl_plugin_v4 {
    const char *name;
    int (*init)(void **context, int *mask, const char *comm_name, uint64_t comm_id, int nodes,
                int ranks, int rank, ft_nccl_logger logger);
    int (*start)(void *context, void **handle, struct ft_nccl_event_v4 *event);
    int (*stop)(void *handle);
    int (*state)(void *handle, int state, union ft_nccl_state *args);
    int (*finalize)(void *context);
};

/* Versions 5 and 6. */
struct ft_nccl_plugin_v5 {
    const char *name;
    int (*init)(void **context, uint64_t comm_id, int *mask, const char *comm_name, int nodes,
                int ranks, int rank, ft_nccl_logger logger);
    int (*start)(void *context, void **handle, struct ft_nccl_event_v5 *event);
    int (*stop)(void *handle);
    int (*state)(void *handle, int state, union ft_nccl_state *args);
    int (*finalize)(void *context);
};

#endif
