// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PUBLISH_EVENTS_H
#define FT_DAEMON_PUBLISH_EVENTS_H
/*
 * Standing events: each is published when it is raised and when it clears; in between only where it
 * comes to name links without flows that it did not name before.
 *
 * A condition is raised anew every window in which it holds; the sweep at the window's end clears
 * what was not, but of a condition that pauses with its traffic not before so many windows. Capped,
 * in number and in bytes; what is over the cap is counted. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/emit.h"

struct ft_events;

/* Bytes that all take at most, for each of cap: where their last forms are longer, by names of
 * victims and of paths, those that come then are kept without such lists. */
#define FT_EVENTS_BYTES 6144

struct ft_events *ft_events_new(size_t cap, const struct ft_emitter *emitter);
void ft_events_free(struct ft_events *events);

/* The condition (kind, subject) holds in this window. Texts and evidence are borrowed for the call.
 * since_ms is when it began, used when it is new. */
void ft_events_raise(struct ft_events *events, uint32_t window, const Fabrictrace__Event *event);

/* The same of a condition that only traffic shows, which pauses: one that is not raised in as many
 * windows in a row is cleared, and before that only by ft_events_end(). */
#define FT_EVENTS_PAUSE_WINDOWS 6
void ft_events_raise_pausing(struct ft_events *events, uint32_t window,
                             const Fabrictrace__Event *event);

/* Those of a kind that stand and were not raised in this window: clears each of which over() says
 * that the window shows it to be. over() raises nothing. */
void ft_events_end(struct ft_events *events, Fabrictrace__Kind kind, uint32_t window,
                   int64_t now_ms, bool (*over)(void *arg, const Fabrictrace__Event *event),
                   void *arg);

/* Publishes a happening that does not stand. */
void ft_events_once(struct ft_events *events, const Fabrictrace__Event *event);

/* The condition holds from now on, whatever the windows do: until a release without another hold
 * since the release before. */
void ft_events_hold(struct ft_events *events, const Fabrictrace__Event *event);
void ft_events_release(struct ft_events *events, int64_t now_ms);

/* Clears active events that were last raised before this window, those that pause after
 * FT_EVENTS_PAUSE_WINDOWS calls; UINT32_MAX: all but those that are held. */
void ft_events_sweep(struct ft_events *events, uint32_t window, int64_t now_ms);

/* The same in steps, from *index 0 on: looks at one event. *work is what that took, in looks;
 * false: that was all. What is raised between steps in this window or later stays. */
bool ft_events_sweep_step(struct ft_events *events, uint32_t *index, uint32_t window,
                          int64_t now_ms, uint32_t *work);

/* The condition (kind, subject) of an event is over: now, not at the end of the window. */
void ft_events_clear(struct ft_events *events, const Fabrictrace__Event *event, int64_t now_ms);

/* Whether the condition (kind, subject) of an event stands; while a happening is published, which
 * may be of the same kind and subject, false. */
bool ft_events_stands(const struct ft_events *events, const Fabrictrace__Event *event);

/* The last form of the active event for the condition (kind, subject) of this one, packed;
 * NULL when it does not stand. */
const uint8_t *ft_events_now(const struct ft_events *events, const Fabrictrace__Event *event,
                             size_t *len);

/* Forgets all that stand, and takes one as it stood elsewhere; nothing is published. */
void ft_events_forget(struct ft_events *events);
void ft_events_restore(struct ft_events *events, const Fabrictrace__Event *event);

/* Takes one that stood when the daemon before ended: whoever reads what is published has it active.
 * Raised again it is published anew, with its beginning; one that is not in so many sweeps is
 * cleared, and its text says so. */
#define FT_EVENTS_INHERITED_WINDOWS 60
#define FT_EVENTS_UNDERUSED_WINDOWS 360 /* takes many windows to be seen */
void ft_events_inherit(struct ft_events *events, const Fabrictrace__Event *event);

/* The active events, in the order of their raising. */
void ft_events_each(const struct ft_events *events,
                    void (*each)(void *arg, const Fabrictrace__Event *event), void *arg);

/* The next of them, from *index 0 on, unpacked for the call; false: that was all. */
bool ft_events_next(const struct ft_events *events, uint32_t *index,
                    void (*each)(void *arg, const Fabrictrace__Event *event), void *arg);
size_t ft_events_count(const struct ft_events *events);
uint64_t ft_events_refused(const struct ft_events *events);

/* Forms that were kept without their lists. */
uint64_t ft_events_shortened(const struct ft_events *events);

#endif
