// SPDX-License-Identifier: Apache-2.0
/*
 * A training job without GPUs: every rank is a process with real RC queue pairs to its neighbours
 * in a ring, made and connected by a thread of its own as NCCL's proxy does, writes to the next
 * rank all the while, and tells the NCCL profiler plugin what NCCL would tell it.
 *
 * usage: ranks PLUGIN COMM FIRST STEP DEVICE SOCKET [DEVICE SOCKET ...]
 *
 * PLUGIN is its file, or - for a job without it; COMM the communicator's id; DEVICE and SOCKET are
 * the RDMA device of a rank and where its agent listens. On a Soft-RoCE device numbers count up:
 * rank r makes and destroys queue pairs until the next number is FIRST + r * STEP. Then it makes
 * for each channel one to send by, one to receive by, and one that is connected to itself, which is
 * what NCCL flushes GPU memory with.
 *
 * Lines: rank R PID TID      the process, and its thread that has the queue pairs
 *        qp R send|receive|flush CHANNEL LQPN RQPN
 *        ready               all send
 *        killed R            a rank was ended by a signal; the others go on, or hang
 * With SIGUSR1 the ranks make another communicator of them all, COMM + 0x100, and use it for
 * nothing. SIGTERM ends it in order: exit 0.
 */
#include "config.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/nccl/driver.h"

#define RANKS_MAX 16
#define CHANNELS  2
#define BYTES     4096
#define PAUSE_NS  200000000
#define COMM_NAME "ring"

/* What ranks tell each other, as NCCL does over its bootstrap network. */
struct place {
    uint32_t send[CHANNELS], receive[CHANNELS];
    union ibv_gid gid;
    uint64_t address;
    uint32_t key;
};

static struct shared {
    pthread_barrier_t barrier;
    atomic_int idle; /* ranks that send nothing more, or were killed */
    struct place places[RANKS_MAX];
} * shared;

static int own, ranks;
static const char *plugin, *device;
static uint64_t comm_id;
static uint32_t first_number;
static volatile sig_atomic_t opening, stopping;

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *completions;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t gid_index;
static uint8_t buffer[2][BYTES];
static struct ibv_qp *send_qps[CHANNELS], *receive_qps[CHANNELS], *flush_qps[CHANNELS];

static void fail(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", own, what, strerror(errno));
    exit(1);
}

static void open_device(void)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct place *place = &shared->places[own];

    for (int i = 0; list && list[i] && !context; i++)
        if (strcmp(ibv_get_device_name(list[i]), device) == 0)
            context = ibv_open_device(list[i]);
    if (!context)
        fail(device);
    ibv_free_device_list(list);
    for (int i = 0; ibv_query_gid(context, 1, i, &place->gid) == 0; i++) {
        gid_index = (uint8_t)i;
        if (memcmp(place->gid.raw, mapped, sizeof(mapped)) == 0)
            break;
    }
    pd = ibv_alloc_pd(context);
    completions = ibv_create_comp_channel(context);
    cq = completions ? ibv_create_cq(context, 4 * CHANNELS, NULL, completions, 0) : NULL;
    mr = pd ? ibv_reg_mr(pd, buffer, sizeof(buffer),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
            : NULL;
    if (!cq || !mr)
        fail("open");
    place->address = (uintptr_t)buffer[1];
    place->key = mr->rkey;
}

static struct ibv_qp *make(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    if (!qp)
        fail("ibv_create_qp");
    return qp;
}

static void make_all(void)
{
    struct place *place = &shared->places[own];
    struct ibv_qp *qp;

    for (;;) {
        uint32_t number;

        qp = make();
        number = qp->qp_num;
        ibv_destroy_qp(qp);
        if (number == first_number - 1)
            break;
        if (number >= first_number) {
            fprintf(stderr, "rank %d: number %u of %s is past %u\n", own, number, device,
                    first_number);
            exit(1);
        }
    }
    for (int c = 0; c < CHANNELS; c++) {
        send_qps[c] = make();
        receive_qps[c] = make();
        flush_qps[c] = make();
        place->send[c] = send_qps[c]->qp_num;
        place->receive[c] = receive_qps[c]->qp_num;
    }
    if (send_qps[0]->qp_num != first_number) {
        fprintf(stderr, "rank %d: number %u, not %u\n", own, send_qps[0]->qp_num, first_number);
        exit(1);
    }
}

static void connect_to(struct ibv_qp *qp, const struct place *peer, uint32_t number,
                       const char *what, int channel)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        fail("INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = number,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = peer->gid, .sgid_index = gid_index, .hop_limit = 64}},
    };
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        fail("RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
        fail("RTS");
    printf("qp %d %s %d %u %u\n", own, what, channel, qp->qp_num, number);
}

static void connect_all(void)
{
    const struct place *next = &shared->places[(own + 1) % ranks];
    const struct place *previous = &shared->places[(own + ranks - 1) % ranks];

    for (int c = 0; c < CHANNELS; c++) {
        connect_to(send_qps[c], next, next->receive[c], "send", c);
        connect_to(receive_qps[c], previous, previous->send[c], "receive", c);
        connect_to(flush_qps[c], &shared->places[own], flush_qps[c]->qp_num, "flush", c);
    }
}

/* Waits for writes to end, or for a while. Returns how many did. */
static int reap(void)
{
    struct pollfd ready = {.fd = completions->fd, .events = POLLIN};
    struct ibv_cq *which;
    struct ibv_wc wc;
    void *unused;
    int n = 0;

    if (poll(&ready, 1, PAUSE_NS / 1000000) <= 0)
        return 0;
    if (ibv_get_cq_event(completions, &which, &unused))
        fail("ibv_get_cq_event");
    ibv_ack_cq_events(which, 1);
    if (ibv_req_notify_cq(cq, 0))
        fail("ibv_req_notify_cq");
    for (; ibv_poll_cq(cq, 1, &wc) > 0; n++)
        if (wc.status != IBV_WC_SUCCESS)
            fail(ibv_wc_status_str(wc.status));
    return n;
}

/* A full buffer to the next rank by each channel. One that is gone never answers, and Soft-RoCE
 * tries on for good: then this rank hangs, as NCCL's would. */
static void write_all(void)
{
    const struct place *next = &shared->places[(own + 1) % ranks];
    int pending = CHANNELS;

    for (int c = 0; c < CHANNELS; c++) {
        struct ibv_sge piece = {
            .addr = (uintptr_t)buffer[0], .length = sizeof(buffer[0]), .lkey = mr->lkey};
        struct ibv_send_wr wr = {
            .sg_list = &piece,
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_SIGNALED,
            .wr.rdma = {.remote_addr = next->address, .rkey = next->key},
        };
        struct ibv_send_wr *bad;

        if (ibv_post_send(send_qps[c], &wr, &bad))
            fail("ibv_post_send");
    }
    while (pending > 0 && !stopping)
        pending -= reap();
}

/* A queue pair that goes while its peer still sends would make that one try again and again. */
static void wait_for_others(void)
{
    const struct timespec step = {.tv_nsec = PAUSE_NS / 10};

    shared->idle++;
    while (shared->idle < ranks)
        nanosleep(&step, NULL);
}

static void *work(void *arg)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct driver driver = {.v5 = NULL};
    void *comm = NULL, *another = NULL;
    int mask = 0;

    printf("rank %d %d %ld\n", own, (int)getpid(), (long)syscall(SYS_gettid));
    if (*plugin != '-') {
        driver_load(&driver, plugin);
        if (driver.v5->init(&comm, comm_id, &mask, COMM_NAME, ranks, ranks, own, NULL))
            fail("init of the plugin");
    }
    open_device();
    make_all();
    pthread_barrier_wait(&shared->barrier);
    connect_all();
    if (ibv_req_notify_cq(cq, 0))
        fail("ibv_req_notify_cq");
    pthread_barrier_wait(&shared->barrier);
    for (uint64_t operation = 0; !stopping; operation++) {
        write_all();
        if (comm)
            driver_ring(driver.v5, comm, own, ranks, operation, CHANNELS, 1, BYTES);
        if (operation == 0) {
            pthread_barrier_wait(&shared->barrier);
            if (own == 0)
                puts("ready");
        }
        if (comm && opening && !another &&
            driver.v5->init(&another, comm_id + 0x100, &mask, COMM_NAME, ranks, ranks, own, NULL))
            fail("init of the plugin");
        nanosleep(&pause, NULL);
    }
    wait_for_others();
    for (int c = 0; c < CHANNELS; c++) {
        ibv_destroy_qp(send_qps[c]);
        ibv_destroy_qp(receive_qps[c]);
        ibv_destroy_qp(flush_qps[c]);
    }
    if (another)
        driver.v5->finalize(another);
    if (comm)
        driver.v5->finalize(comm);
    return arg;
}

static void on_term(int signal)
{
    (void)signal;
    stopping = 1;
}

static void on_usr1(int signal)
{
    (void)signal;
    opening = 1;
}

static int be_rank(const char *socket)
{
    pthread_t thread;

    setenv("FABRICTRACE_SOCKET", socket, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, on_term);
    signal(SIGUSR1, on_usr1);
    if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
        fail("thread");
    return 0;
}

static pid_t pids[RANKS_MAX];

static void pass_on(int signal)
{
    for (int r = 0; r < ranks; r++)
        if (pids[r] > 0)
            kill(pids[r], signal);
}

/* Until all have ended. A rank that fails takes the others with it. */
static int watch(void)
{
    int status, rc = 0;
    pid_t pid;

    while ((pid = wait(&status)) > 0) {
        for (int r = 0; r < ranks; r++) {
            if (pids[r] != pid)
                continue;
            pids[r] = 0;
            if (WIFSIGNALED(status)) {
                shared->idle++;
                printf("killed %d\n", r);
            }
        }
        if (!WIFSIGNALED(status) && WEXITSTATUS(status)) {
            rc = 1;
            pass_on(SIGKILL);
        }
    }
    return rc;
}

int main(int argc, char **argv)
{
    pthread_barrierattr_t attr;
    struct sigaction passing = {.sa_handler = pass_on, .sa_flags = SA_RESTART};

    ranks = (argc - 5) / 2;
    if (argc < 9 || argc % 2 == 0 || ranks > RANKS_MAX)
        return 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    plugin = argv[1];
    comm_id = strtoull(argv[2], NULL, 16);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("mmap");
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attr, (unsigned)ranks);
    for (own = 0; own < ranks; own++) {
        device = argv[5 + 2 * own];
        first_number = (uint32_t)(atoi(argv[3]) + own * atoi(argv[4]));
        pids[own] = fork();
        if (pids[own] < 0)
            fail("fork");
        if (pids[own] == 0)
            return be_rank(argv[6 + 2 * own]);
    }
    sigaction(SIGTERM, &passing, NULL);
    sigaction(SIGUSR1, &passing, NULL);
    return watch();
}
