// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_VOLUME_H
#define FT_FABRIC_VOLUME_H
/*
 * How much a flow sent in a window, by the samples of the switches on its path.
 *
 * Each switch samples the same packets for itself, one in N. Over the stages of a path, which each
 * packet crosses once, their estimates are averaged with the weights 1/N: that is right on average
 * at any number of samples, where the largest of them is too high (1.4 times the truth for three
 * switches with four samples each), and its error is that of all samples together. Switches of one
 * stage, which a sprayed flow crosses in parts, add up. A switch counts where it has no sample in
 * the window as well, from its first sample of the flow on until its last one is forgotten; before
 * that it is not distinguished from one that does not sample, and a flow of which not each switch
 * has a sample yet comes out too high. That sample may be of the next window, up to a moment that
 * the caller sets (ft_sighting_set_in_time()): what else of the next window is there depends on
 * when this one is closed.
 *
 * A switch may see a part alone: an exporter loses datagrams, or one of several does not sample.
 * - Where the stages of a window differ by more than one in a thousand would by chance (chi-square;
 *   2 % are no difference), the lowest is left out until the others agree. Where it is the sum over
 *   several switches that exceeds what all others agree on, the sum is: packets may cross two.
 * - Each window says by how much more likely the stage sees 0.7 of what others see than all of it.
 *   These add up while they are in favour (CUSUM, Page 1954), and where they exceed e^3 the stage
 *   is left out, until they fall again. The window itself has no part in that, so that what is left
 *   out is not what is low by chance.
 * - In between the figure may be too low, and its error is by so much larger.
 *
 * All of that is of the flow's own samples: it does not depend on which other flows a daemon has.
 * What other flows show as well the caller knows: switches that had an outage.
 * Where the ends of the flow are not known, or a poller does not say N, the figure is that of the
 * switch with the most samples; so it is where another switch, on none of the equal-cost paths,
 * saw more than those on them. Pure. Thread: one.
 */
#include "lib/fabric/evidence.h"

struct ft_volume {
    uint64_t samples; /* as many would have its error */
    uint64_t bytes;
    uint32_t source; /* that took them, or most of them */
};

/* Samples and bytes of one window (slot: its parity) at the switch that saw most. Within a switch
 * no packet counts twice: the sum is over one source; or over the ports in, of each its best
 * source; or over the ports out likewise; whichever is the most (line cards that sample their own
 * ports add up, the two ends of one way through the switch do not). */
struct ft_volume ft_volume_best(const struct ft_evidence *ev, unsigned slot);

/* Of all switches of a window that is closed, once: what it says of them is noted in their
 * sightings, which are all in time for the next one. src_nic, dst_nic: FT_NONE where they are not
 * known. outages: whether each switch of the topology sent no samples for a part of the window, by
 * its id, so that it does not count where another does; NULL: none did. */
struct ft_volume ft_volume_close(struct ft_evidence *ev, const struct ft_topology *t,
                                 uint32_t src_nic, uint32_t dst_nic, unsigned slot,
                                 const bool *outages);

/* An end of the interval of what so many samples stand for, as a part of their estimate; z in
 * standard deviations, -1.96 and 1.96 for 95 %. It is the quantile of the gamma distribution of
 * samples + 1/2 (Jeffreys), by Wilson and Hilferty: unlike estimate +- error it holds the truth as
 * often as it says where samples are few. */
double ft_volume_end(uint64_t samples, double z);

#endif
