/* http, from inside:
 *
 * http_date.c  dates
 * http_head.c  an answer's status and headers, and what body they announce
 * http.c       requests, and an answer's body in its framings
 */
#pragma once

#include "upload/http.h"

/* "answer: <what>"; nothing more is read. */
TN_MUST_USE tn_rc tn_http_broken(struct tn_http *http, struct tn_err *err, const char *what);

/* Takes bytes of a head. At its end `event` is HEAD, and the state what comes behind it; unless it
 * was an interim one. */
TN_MUST_USE tn_rc tn_http_take_head(struct tn_http *http, struct tn_bytes *input,
                                    enum tn_http_event *event, struct tn_err *err);
