/* s3, from inside:
 *
 * s3_request.c  a request becomes a signed head
 * s3_answer.c   an answer's headers and XML become fields
 * s3_verdict.c  status and error code become a verdict and words
 * s3.c          the order of it all
 */
#pragma once

#include "upload/s3.h"

enum {
    TN_S3_SKEW_MAX_MS = 15 * 60 * 1000, /* S3: a signature is good for so long */
};

/* Whether a second try could do what the first already did, and mistake it for another's. */
static inline bool tn_s3_is_once(const struct tn_s3_request *request)
{
    return request->verb == TN_S3_COMPLETE_UPLOAD ||
           (request->verb == TN_S3_PUT && (request->if_absent || request->if_match));
}

TN_MUST_USE tn_rc tn_s3_write(const struct tn_s3_exchange *exchange, struct tn_arena *scratch,
                              struct tn_buf *head, struct tn_err *err);

/* At HEAD. */
void tn_s3_take_headers(struct tn_s3_exchange *exchange);
void tn_s3_take_xml(struct tn_s3_exchange *exchange, struct tn_bytes bytes);
void tn_s3_end_xml(struct tn_s3_exchange *exchange);
tn_xml_element_fn tn_s3_take_element;
/* Whether the body is the object, rather than XML. */
bool tn_s3_is_object(const struct tn_s3_exchange *exchange);
/* Whether the object's bytes are those of the request: all of them, or its range. */
bool tn_s3_is_asked(const struct tn_s3_exchange *exchange);
/* Whether success is told in XML. */
bool tn_s3_answers_xml(enum tn_s3_verb verb);

/* Of a whole answer: sets verdict, clock and region; returns OK or says why. */
TN_MUST_USE tn_rc tn_s3_judge(struct tn_s3_exchange *exchange, struct tn_err *err);
/* Of a broken one; puts the request in front of the words in `err`. */
void tn_s3_judge_lost(struct tn_s3_exchange *exchange, struct tn_err *err);
