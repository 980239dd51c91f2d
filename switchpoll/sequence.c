// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/sequence.h"

enum ft_sequence_step ft_sequence_look(const struct ft_sequence *s, uint32_t number)
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

void ft_sequence_restart(struct ft_sequence *s, uint32_t number)
{
    s->last = number;
    s->span = 1;
    s->missing = 0;
}

int64_t ft_sequence_take(struct ft_sequence *s, uint32_t number)
{
    uint32_t ahead = number - s->last;

    switch (ft_sequence_look(s, number)) {
    case FT_SEQUENCE_LATE:
        s->missing &= ~(UINT64_C(1) << (s->last - number));
        return -1;
    case FT_SEQUENCE_AHEAD:
        break;
    default:
        return 0;
    }
    if (s->span == 0) {
        ft_sequence_restart(s, number);
        return 0;
    }
    if (ahead < FT_SEQUENCE_WINDOW)
        s->missing = s->missing << ahead | ((UINT64_C(1) << ahead) - 2);
    else
        s->missing = ~UINT64_C(1);
    s->last = number;
    s->span = ahead < FT_SEQUENCE_WINDOW - s->span ? s->span + ahead : FT_SEQUENCE_WINDOW;
    return (int64_t)ahead - 1;
}
