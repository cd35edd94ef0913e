/* log: one line an event, in a ring of fixed size.
 *
 *     warn commit rc=-8 snapshot=17 text="publish snapshot-17: already there"
 *
 * The newest lines stay readable until newer ones need their room; a sink may also get each line at
 * once (stderr, syslog), with the time if it wants one. `error`: a person must act; `warn`: tarn
 * recovered by itself; `info`: at most one line a minute when all is well; `debug`: compiled out
 * unless TN_DEBUG is set. Logged once, by whoever decides what to do. The loop's thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum tn_log_level { TN_LOG_ERROR, TN_LOG_WARN, TN_LOG_INFO, TN_LOG_DEBUG };

enum { TN_LOG_LINE_SIZE = 512 }; /* with its newline; what is longer is cut */

/* `line` ends in a newline, which `size` counts, and a zero; it is valid during the call. */
typedef void tn_log_sink_fn(void *user, enum tn_log_level level, const char *line, size_t size);

struct tn_log {
    unsigned char *ring; /* the caller's, until it stops using the log */
    size_t ring_size;
    uint64_t written;       /* bytes since init; the next byte goes to written % ring_size */
    enum tn_log_level most; /* what is chattier is dropped */
    tn_log_sink_fn *sink;   /* NULL for none */
    void *user;
    uint64_t count[TN_LOG_DEBUG + 1]; /* lines of each level, dropped ones too */
};

/* `size` is at least TN_LOG_LINE_SIZE. Logs up to TN_LOG_INFO until `most` is set. */
void tn_log_init(struct tn_log *log, void *memory, size_t size, tn_log_sink_fn *sink, void *user);

/* `format` makes the "key=value ..." part. Control characters become spaces: one event, one line.
 */
void tn_log_event(struct tn_log *log, enum tn_log_level level, const char *module,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The event of an error: rc=... text="...", with the text's quotes made single. */
void tn_log_err(struct tn_log *log, enum tn_log_level level, const char *module,
                const struct tn_err *err);

#ifdef TN_DEBUG
#define tn_log_debug(log, module, ...) tn_log_event((log), TN_LOG_DEBUG, (module), __VA_ARGS__)
#else
#define tn_log_debug(log, module, ...) ((void)sizeof(log))
#endif

/* Appends whole lines to `out`, the oldest first, beginning at position `since` or at the oldest
 * line that is left. Returns the position behind the last one: the next call's `since`. */
uint64_t tn_log_read(const struct tn_log *log, uint64_t since, struct tn_buf *out);

const char *tn_log_level_text(enum tn_log_level level);
