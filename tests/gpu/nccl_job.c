// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * One rank of a real NCCL job. Rank 0 leaves NCCL's id in IDFILE for the others.
 *
 * nccl_job RANK RANKS IDFILE ITERATIONS BYTES...: every operation at every size (bytes of the send
 * buffer of AllReduce), results verified; one line of JSON for each with the mean time of one
 * operation.
 *
 * nccl_job RANK RANKS IDFILE train|graph STEPS LATE_MS: steps of a training, each some computation,
 * then an AllReduce of gradients, an AllGather of parameters in a second communicator and a message
 * to the next rank, by a CUDA graph or one by one; and a line of JSON. After SIGUSR1 the rank
 * computes LATE_MS longer.
 */

#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t rc_ = (call);                                                                  \
        if (rc_ != cudaSuccess)                                                                    \
            die(#call, cudaGetErrorString(rc_));                                                   \
    } while (0)
#define NCCL(call)                                                                                 \
    do {                                                                                           \
        ncclResult_t rc_ = (call);                                                                 \
        if (rc_ != ncclSuccess)                                                                    \
            die(#call, ncclGetErrorString(rc_));                                                   \
    } while (0)

enum {
    COMPUTE_US = 40000,
    JITTER_US = 2000,
    GRADIENTS = 1 << 20,  /* elements */
    PARAMETERS = 1 << 18, /* the same, of all ranks */
    ACTIVATIONS = 1 << 16,
};

static int rank, ranks;
static volatile sig_atomic_t late;
static ncclComm_t comm, second;
static cudaStream_t stream;
static float *from, *to;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
    exit(1);
}

static void write_id(const char *file, const ncclUniqueId *id)
{
    char temporary[4096];
    FILE *f;

    snprintf(temporary, sizeof(temporary), "%s.new", file);
    f = fopen(temporary, "w");
    if (!f || fwrite(id, sizeof(*id), 1, f) != 1 || fclose(f) || rename(temporary, file))
        die(file, "cannot be written");
}

static void read_id(const char *file, ncclUniqueId *id)
{
    const struct timespec wait = {0, 20000000};
    FILE *f = NULL;

    for (int i = 0; i < 3000 && !f; i++) {
        f = fopen(file, "r");
        if (!f)
            nanosleep(&wait, NULL);
    }
    if (!f || fread(id, sizeof(*id), 1, f) != 1)
        die(file, "did not appear within a minute");
    fclose(f);
}

/* count: elements of the whole operation; a multiple of the ranks. */
static void all_reduce(size_t count)
{
    NCCL(ncclAllReduce(from, to, count, ncclFloat32, ncclSum, comm, stream));
}

static void all_gather(size_t count)
{
    NCCL(ncclAllGather(from, to, count / (size_t)ranks, ncclFloat32, comm, stream));
}

static void reduce_scatter(size_t count)
{
    NCCL(ncclReduceScatter(from, to, count / (size_t)ranks, ncclFloat32, ncclSum, comm, stream));
}

static void broadcast(size_t count)
{
    NCCL(ncclBroadcast(from, to, count, ncclFloat32, 0, comm, stream));
}

static void all_to_all(size_t count)
{
    size_t part = count / (size_t)ranks;

    NCCL(ncclGroupStart());
    for (int peer = 0; peer < ranks; peer++) {
        NCCL(ncclSend(from + (size_t)peer * part, part, ncclFloat32, peer, comm, stream));
        NCCL(ncclRecv(to + (size_t)peer * part, part, ncclFloat32, peer, comm, stream));
    }
    NCCL(ncclGroupEnd());
}

static void send_receive(size_t count)
{
    NCCL(ncclGroupStart());
    NCCL(ncclSend(from, count, ncclFloat32, (rank + 1) % ranks, comm, stream));
    NCCL(ncclRecv(to, count, ncclFloat32, (rank + ranks - 1) % ranks, comm, stream));
    NCCL(ncclGroupEnd());
}

/* Every rank sends its rank + 1: what the first element of the result must be. */
static float first_of(void (*run)(size_t count))
{
    if (run == all_reduce || run == reduce_scatter)
        return (float)(ranks * (ranks + 1)) / 2;
    if (run == send_receive)
        return (float)((rank + ranks - 1) % ranks + 1);
    return 1; /* of rank 0 */
}

static double time_us(void (*run)(size_t count), size_t count, int iterations)
{
    cudaEvent_t begin, end;
    float ms;

    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    for (int i = 0; i < 5; i++)
        run(count);
    CUDA(cudaEventRecord(begin, stream));
    for (int i = 0; i < iterations; i++)
        run(count);
    CUDA(cudaEventRecord(end, stream));
    CUDA(cudaEventSynchronize(end));
    CUDA(cudaEventElapsedTime(&ms, begin, end));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    return ms * 1000.0 / iterations;
}

static void measure(const char *name, void (*run)(size_t count), size_t bytes, int iterations)
{
    size_t count = bytes / sizeof(float) / (size_t)ranks * (size_t)ranks;
    float got = 0;
    double us;

    CUDA(cudaMemset(to, 0, bytes));
    us = time_us(run, count, iterations);
    CUDA(cudaMemcpy(&got, to, sizeof(got), cudaMemcpyDeviceToHost));
    if (got != first_of(run))
        die(name, "the result is wrong");
    printf("{\"rank\":%d,\"op\":\"%s\",\"bytes\":%zu,\"iterations\":%d,\"us\":%.2f}\n", rank, name,
           count * sizeof(float), iterations + 5, us);
    fflush(stdout);
}

static void fill(size_t bytes)
{
    size_t count = bytes / sizeof(float);
    float *values = malloc(bytes);

    if (!values)
        die("fill", "no memory");
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(rank + 1);
    CUDA(cudaMalloc((void **)&from, bytes));
    CUDA(cudaMalloc((void **)&to, bytes));
    CUDA(cudaMemcpy(from, values, bytes, cudaMemcpyHostToDevice));
    free(values);
}

static void be_late(int number)
{
    (void)number;
    late = 1;
}

static void compute(long us)
{
    struct timespec left = {us / 1000000, us % 1000000 * 1000};

    while (nanosleep(&left, &left)) {
    }
}

/* In a second communicator, and back. */
static void in_second(void (*run)(size_t count), size_t count)
{
    ncclComm_t first = comm;

    comm = second;
    run(count);
    comm = first;
}

static void exchange(void)
{
    all_reduce(GRADIENTS);
    in_second(all_gather, PARAMETERS);
    send_receive(ACTIVATIONS);
}

static cudaGraphExec_t graph_of_exchange(void)
{
    cudaGraphExec_t graph;
    cudaGraph_t captured;

    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    exchange();
    CUDA(cudaStreamEndCapture(stream, &captured));
    CUDA(cudaGraphInstantiateWithFlags(&graph, captured, 0));
    CUDA(cudaGraphDestroy(captured));
    return graph;
}

static void train(int steps, int late_ms, int by_graph)
{
    cudaGraphExec_t graph = NULL;
    unsigned seed = (unsigned)rank;

    signal(SIGUSR1, be_late);
    NCCL(ncclCommSplit(comm, 0, rank, &second, NULL));
    if (by_graph)
        graph = graph_of_exchange();
    for (int step = 0; step < steps; step++) {
        compute(COMPUTE_US + rand_r(&seed) % JITTER_US);
        if (late)
            compute(late_ms * 1000L);
        if (by_graph)
            CUDA(cudaGraphLaunch(graph, stream));
        else
            exchange();
        CUDA(cudaStreamSynchronize(stream));
        printf("{\"rank\":%d,\"step\":%d}\n", rank, step + 1);
        fflush(stdout);
    }
    if (by_graph)
        CUDA(cudaGraphExecDestroy(graph));
    NCCL(ncclCommDestroy(second));
}

static void measure_all(int iterations, char **bytes, int count)
{
    static const struct {
        const char *name;
        void (*run)(size_t count);
    } ops[] = {
        {"AllReduce", all_reduce}, {"AllGather", all_gather}, {"ReduceScatter", reduce_scatter},
        {"Broadcast", broadcast},  {"AllToAll", all_to_all},  {"SendRecv", send_receive},
    };

    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++)
            measure(ops[k].name, ops[k].run, strtoull(bytes[i], NULL, 10), iterations);
}

static size_t most_bytes(char **bytes, int count)
{
    size_t most = 0;

    for (int i = 0; i < count; i++)
        if (strtoull(bytes[i], NULL, 10) > most)
            most = strtoull(bytes[i], NULL, 10);
    return most;
}

int main(int argc, char **argv)
{
    ncclUniqueId id;
    int by_graph = argc == 7 && !strcmp(argv[4], "graph");
    int trains = by_graph || (argc == 7 && !strcmp(argv[4], "train"));

    if (argc < 6) {
        fprintf(stderr, "usage: nccl_job RANK RANKS IDFILE ITERATIONS BYTES...\n"
                        "       nccl_job RANK RANKS IDFILE train|graph STEPS LATE_MS\n");
        return 2;
    }
    rank = atoi(argv[1]);
    ranks = atoi(argv[2]);
    CUDA(cudaSetDevice(0));
    if (rank == 0) {
        NCCL(ncclGetUniqueId(&id));
        write_id(argv[3], &id);
    } else {
        read_id(argv[3], &id);
    }
    NCCL(ncclCommInitRank(&comm, ranks, id, rank));
    CUDA(cudaStreamCreate(&stream));
    fill(trains ? GRADIENTS * sizeof(float) : most_bytes(argv + 5, argc - 5));
    if (trains)
        train(atoi(argv[5]), atoi(argv[6]), by_graph);
    else
        measure_all(atoi(argv[4]), argv + 5, argc - 5);
    CUDA(cudaStreamSynchronize(stream));
    NCCL(ncclCommFinalize(comm));
    NCCL(ncclCommDestroy(comm));
    return 0;
}
