// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/log.h"

#ifdef HAVE_SYSTEMD
/* Else every message would name a line of this file as its origin. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#define FIELD_BYTES 2304 /* a name and a line of the log */

static struct iovec field(char *text, const char *name, const char *value)
{
    int n = snprintf(text, FIELD_BYTES, "%s=%s", name, value);

    return (struct iovec){text, n < FIELD_BYTES ? (size_t)n : FIELD_BYTES - 1};
}

static bool send_entry(enum ft_log_level level, const struct ft_log_subject *subject,
                       const char *message_id, const char *text)
{
    char texts[4][FIELD_BYTES], number[2] = {(char)('0' + level)};
    struct iovec entry[4] = {
        field(texts[0], "MESSAGE", text),
        field(texts[1], "PRIORITY", number),
        field(texts[2], "MESSAGE_ID", message_id),
    };
    int count = 3;

    if (subject->name)
        entry[count++] = field(texts[3], subject->field, subject->name);
    return sd_journal_sendv(entry, count) == 0;
}

/* The variable alone does not say it: it is inherited where stderr has been redirected
 * (systemd.exec(5)). */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat file;

    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &file) == 0 && file.st_dev == device && file.st_ino == inode;
}

void ft_journal_open(void)
{
    if (stderr_is_journal())
        ft_log_journal_set(send_entry);
}
#else
void ft_journal_open(void) {}
#endif
