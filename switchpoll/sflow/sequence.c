// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sflow/sequence.h"

static enum ft_sequence_step look(const struct ft_sequence *s, uint32_t number)
{
    uint32_t ahead = number - s->last;
    uint32_t behind = s->last - number;

    if (s->span == 0)
        return FT_SEQUENCE_AHEAD;
    if (ahead != 0 && ahead < FT_SEQUENCE_JUMP_MAX)
        return FT_SEQUENCE_AHEAD;
    if (behind >= FT_SEQUENCE_WINDOW)
        return FT_SEQUENCE_FAR;
    if (behind >= s->span)
        return FT_SEQUENCE_EARLY;
    return s->missing >> behind & 1 ? FT_SEQUENCE_LATE : FT_SEQUENCE_SEEN;
}

enum ft_sequence_step ft_sequence_look(const struct ft_sequence *s, uint32_t number)
{
    enum ft_sequence_step step = look(s, number);
    uint32_t after = number - s->before_last;

    if (!s->outlying || after == 0 || after >= FT_SEQUENCE_WINDOW)
        return step;
    if (step == FT_SEQUENCE_EARLY || step == FT_SEQUENCE_FAR ||
        (step == FT_SEQUENCE_AHEAD && number - s->last >= FT_SEQUENCE_WINDOW))
        return FT_SEQUENCE_BACK;
    return step;
}

/* Of several jumps in a row the stream before the first is kept: strays do not vouch for each
 * other. */
static void mark_uncertain(struct ft_sequence *s, uint32_t jumped)
{
    if (!s->outlying) {
        s->before_last = s->last;
        s->before_span = s->span;
        s->before_missing = s->missing;
        s->jumped = 0;
        s->outlying = true;
    }
    s->jumped += jumped;
}

void ft_sequence_restart(struct ft_sequence *s, uint32_t number)
{
    if (s->span > 0)
        mark_uncertain(s, 0);
    s->last = number;
    s->span = 1;
    s->missing = 0;
}

static int64_t step_ahead(struct ft_sequence *s, uint32_t number)
{
    uint32_t ahead = number - s->last;

    if (ahead >= FT_SEQUENCE_WINDOW) {
        mark_uncertain(s, ahead - 1);
        s->missing = ~UINT64_C(1);
    } else {
        s->outlying = false;
        s->missing = s->missing << ahead | ((UINT64_C(1) << ahead) - 2);
    }
    s->last = number;
    s->span = ahead < FT_SEQUENCE_WINDOW - s->span ? s->span + ahead : FT_SEQUENCE_WINDOW;
    return (int64_t)ahead - 1;
}

int64_t ft_sequence_take(struct ft_sequence *s, uint32_t number)
{
    int64_t back;

    switch (ft_sequence_look(s, number)) {
    case FT_SEQUENCE_LATE:
        s->missing &= ~(UINT64_C(1) << (s->last - number));
        return -1;
    case FT_SEQUENCE_BACK:
        back = s->jumped;
        s->last = s->before_last;
        s->span = s->before_span;
        s->missing = s->before_missing;
        return step_ahead(s, number) - back;
    case FT_SEQUENCE_AHEAD:
        break;
    default:
        return 0;
    }
    if (s->span == 0) {
        ft_sequence_restart(s, number);
        return 0;
    }
    return step_ahead(s, number);
}
