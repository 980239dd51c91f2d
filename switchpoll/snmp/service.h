// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_SERVICE_H
#define FT_SWITCHPOLL_SNMP_SERVICE_H
/*
 * The SNMP side of the program as one part: from settings to a poller that writes to the output,
 * its reload, and its figures. Without snmp.switches it is there and does nothing.
 * Owner: the caller; loop and output outlive it. Thread: the loop's own.
 */
#include "lib/base/prometheus.h"
#include "lib/io/loop.h"
#include "lib/io/snmp/snmp.h"
#include "switchpoll/output/output.h"
#include "switchpoll/settings.h"
#include "switchpoll/snmp/poller.h"

struct ft_snmp_service;

/* Starts to poll. source_id, of this program, is borrowed. NULL after a message in the log. */
struct ft_snmp_service *ft_snmp_service_new(struct ft_loop *loop, struct ft_output *output,
                                            const char *source_id,
                                            const struct ft_switchpoll_settings *settings);
void ft_snmp_service_free(struct ft_snmp_service *service);

/* A reload in two steps, so that it can be refused completely. The first reads the file of switches
 * and changes nothing; *poller (NULL: no switches) is for the second, which starts anew with it, or
 * for ft_poller_free(). -errno after a message. */
int ft_snmp_service_prepare(struct ft_snmp_service *service,
                            const struct ft_switchpoll_settings *settings,
                            struct ft_poller **poller);
void ft_snmp_service_adopt(struct ft_snmp_service *service, struct ft_poller *poller_take);

/* Polls no more. */
void ft_snmp_service_stop(struct ft_snmp_service *service);

/* Requests and what became of them, for the loss record. Zero for NULL. */
void ft_snmp_service_requests(const struct ft_snmp_service *service, struct ft_snmp_stats *stats);

/* The figures, on a page of ft_poll_metrics. Takes NULL. */
void ft_snmp_service_write(const struct ft_snmp_service *service, struct ft_prom *page);

#endif
