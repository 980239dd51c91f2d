// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/discovery/discovery_impl.h"

#define MEMORY_MS 3600000
/* A port that was enabled again is not up at once: links at 400 Gb/s are trained for seconds. */
#define RISING_MS 60000

#define ADVISE_CABLE "look at the cable, its optics and both ports"
#define ADVISE_SHUT  "nothing, if that is planned work; else enable the port"

struct ft_port_key ft_port_key(const char *switch_name, const char *port)
{
    struct ft_port_key key = {.port = ""};

    snprintf(key.switch_name, sizeof(key.switch_name), "%s", switch_name);
    snprintf(key.port, sizeof(key.port), "%s", port);
    return key;
}

struct ft_port_key ft_port_key_of(const struct ft_survey *s, uint32_t end)
{
    ft_survey_pace(s);
    return ft_port_key(s->nodes[s->ends[end].node].name, s->ends[end].name);
}

/* Of a link that is down, or not heard of: what its ports say. FT_NONE: a port is not there. */
struct ends {
    uint32_t here, there;
    bool here_down, there_down;
    bool here_shut, there_shut;
};

static struct ends ends_of(const struct ft_survey *s, uint32_t here, uint32_t there)
{
    struct ends e = {.here = here, .there = there};

    if (here != FT_NONE) {
        e.here_down = ft_survey_says_down(s, here);
        e.here_shut = ft_survey_is_shut(s, here);
    }
    if (there != FT_NONE) {
        e.there_down = ft_survey_says_down(s, there);
        e.there_shut = ft_survey_is_shut(s, there);
    }
    return e;
}

static struct ft_known_link *remember(struct ft_discovery *d, const struct ft_survey *s,
                                      uint32_t end)
{
    struct ft_port_key key = ft_port_key_of(s, end);
    struct ft_known_link *link;
    bool fresh;

    link = ft_table_insert(d->links, &key, &fresh);
    if (link)
        link->peer = ft_port_key_of(s, s->ends[end].link);
    return link;
}

static void mark(struct ft_build *b, const struct ft_port_key *port, enum ft_link_state state,
                 int64_t since_ms)
{
    struct ft_mark *m;
    bool fresh;

    m = ft_table_insert(b->marks, port, &fresh);
    if (!m)
        return;
    m->state = state;
    m->since_ms = since_ms;
}

static enum ft_link_state state_of(const struct ends *e)
{
    return e->here_shut ? FT_LINK_SHUT : e->there_shut ? FT_LINK_PEER_SHUT : FT_LINK_DOWN;
}

static void add(struct ft_build *b, enum ft_finding_kind kind, const struct ft_known_link *link,
                const struct ends *e, const char *why)
{
    struct ft_finding *f = ft_findings_add(
        &b->findings, kind, link->port.switch_name, link->port.port,
        kind == FT_FINDING_LINK_SHUT ? ADVISE_SHUT : ADVISE_CABLE,
        "the link to %.100s %.100s is down: %s", link->peer.switch_name, link->peer.port, why);

    if (!f)
        return;
    memcpy(f->peer, link->peer.switch_name, sizeof(f->peer));
    memcpy(f->peer_port, link->peer.port, sizeof(f->peer_port));
    f->since_ms = link->down_ms;
    f->shut = e->here_shut;
    f->peer_shut = e->there_shut;
}

/* Of one port that is down the other may be the cause, and its switch still to say that it was
 * shut: until then nothing is raised. */
static bool is_awaited(struct ft_survey *s, const struct ft_known_link *link, const struct ends *e)
{
    uint32_t other = e->here_down ? e->there : e->here;

    return e->here_down != e->there_down && other != FT_NONE &&
           s->now_ms - link->down_ms < ft_survey_may_say_shut(s, other, link->down_ms);
}

/* A link that is down, once for both its directions. */
static void find_down(struct ft_build *b, const struct ft_known_link *link, const struct ends *e,
                      const char *silence)
{
    struct ft_survey *s = &b->survey;
    const struct ft_port_key *shut = e->here_shut ? &link->port : &link->peer;
    char text[200];

    if (e->here_shut && e->there_shut) {
        add(b, FT_FINDING_LINK_SHUT, link, e, "an administrator shut down both its ports");
    } else if (e->here_shut || e->there_shut) {
        snprintf(text, sizeof(text), "an administrator shut down %.80s %.80s", shut->switch_name,
                 shut->port);
        add(b, FT_FINDING_LINK_SHUT, link, e, text);
    } else if (link->shut_ms && s->now_ms - link->shut_ms < RISING_MS) {
        s->disputed = true;
        add(b, FT_FINDING_LINK_SHUT, link, e,
            "an administrator had shut down a port of it, which is enabled again");
    } else if (is_awaited(s, link, e)) {
        s->disputed = true;
        add(b, FT_FINDING_NOTE, link, e,
            "a port of it is down, and the switch at the other end has not reported since");
    } else {
        add(b, FT_FINDING_LINK_DOWN, link, e,
            e->here_down || e->there_down || !silence ? "a port of it is down" : silence);
    }
}

static void note_down(struct ft_build *b, struct ft_known_link *link, const struct ends *e)
{
    int64_t now_ms = b->survey.now_ms;

    if (!link->down_ms)
        link->down_ms = now_ms;
    if (e->here_shut || e->there_shut)
        link->shut_ms = now_ms;
    mark(b, &link->port, state_of(e), link->down_ms);
}

/* Links that are there: up or down as their ports say. */
static void judge_links(struct ft_discovery *d)
{
    struct ft_survey *s = &d->build->survey;

    for (uint32_t i = 0; i < s->end_count; i++) {
        struct ft_end *end = &s->ends[i];
        /* Samples show that a link is there, never that it is gone: that needs another source. */
        struct ft_known_link *link = end->link == FT_NONE || end->link_source == FT_SOURCE_SAMPLES
                                         ? NULL
                                         : remember(d, s, i);
        struct ends e;

        if (!link)
            continue;
        link->heard_ms = s->now_ms;
        end->down = ft_survey_is_down(s, i);
        if (!end->down) {
            link->down_ms = link->shut_ms = 0;
            continue;
        }
        e = ends_of(s, i, end->link);
        note_down(d->build, link, &e);
        if (end->link > i)
            find_down(d->build, link, &e, NULL);
    }
}

/* Links that were there and are not heard of any more. */
static void judge_memories(struct ft_discovery *d)
{
    struct ft_survey *s = &d->build->survey;
    int64_t now_ms = s->now_ms;
    struct ft_known_link *link, *back;
    uint32_t index = 0;
    struct ends e;

    while ((link = ft_table_next(d->links, &index))) {
        ft_survey_pace(s);
        if (link->heard_ms == now_ms)
            continue;
        back = ft_table_find(d->links, &link->peer);
        /* Where the other port is linked anew, this cable is not any more. */
        if (now_ms - link->heard_ms > MEMORY_MS ||
            (back && memcmp(&back->peer, &link->port, sizeof(link->port)) != 0)) {
            ft_table_remove(d->links, link);
            continue;
        }
        /* LLDP may fail where the link does not: switches that are busy drop it. */
        if (link->build == d->builds && ft_survey_crossed(s, link->end)) {
            link->down_ms = link->shut_ms = 0;
            continue;
        }
        e = ends_of(s, link->build == d->builds ? link->end : FT_NONE,
                    back && back->build == d->builds ? back->end : FT_NONE);
        note_down(d->build, link, &e);
        if (!back || memcmp(&link->port, &link->peer, sizeof(link->port)) < 0)
            find_down(d->build, link, &e, "neither side receives LLDP from the other any more");
    }
}

void ft_links_judge(struct ft_discovery *d)
{
    judge_links(d);
    judge_memories(d);
}

void ft_links_judge_hosts(struct ft_discovery *d)
{
    const struct ft_survey *s = &d->build->survey;

    for (uint32_t i = 0; i < s->end_count; i++)
        if (s->ends[i].host_down) {
            struct ft_port_key key = ft_port_key_of(s, i);

            mark(d->build, &key, ft_survey_is_shut(s, i) ? FT_LINK_SHUT : FT_LINK_DOWN, 0);
        }
}
