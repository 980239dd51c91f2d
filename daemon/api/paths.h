// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_PATHS_H
#define FT_DAEMON_API_PATHS_H
/*
 * The flows as they are now: /api/v1/paths, and which of them match.
 */
#include "daemon/api/sorted.h"
#include "daemon/join/join.h"

/* What is asked of a flow; NULL: anything. */
struct ft_flow_filter {
    char *host; /* a name, or an address */
    char *switch_name, *port, *job, *comm, *group;
    int state; /* enum ft_path_state; -1: any */
    uint32_t rank;
    bool has_tuple, has_address, has_rank;
    struct ft_tuple tuple;
    struct ft_ip address;
};

void ft_flow_filter_free(struct ft_flow_filter *filter);

/* A flow's present path record, of the window that its rate is of. */
void ft_api_path(struct ft_list *list, struct ft_flow *flow);

/* What comes before the flows in an answer: a step writes of its lists, and at last begins the one
 * of the flows. Returns 1 while there is more, 0, or -errno. sorted is its own, zero at first. */
typedef int ft_flows_before(struct ft_list *list, const struct ft_flow_filter *filter,
                            struct ft_sorted *sorted);

/* An answer about something: what comes before, and the flows that match, fastest first, at most
 * `limit`. Takes the filter over. Returns the status for the handler. */
int ft_api_flows_of(const struct ft_view *view, const struct ft_http_request *request,
                    struct ft_flow_filter *filter, size_t limit, ft_flows_before *before,
                    struct ft_writer *body);

/* /api/v1/paths; arg is the view. */
int ft_api_paths(void *view, const struct ft_http_request *request, struct ft_writer *body);

#endif
