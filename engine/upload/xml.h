/* xml: an XML text that comes in pieces, as its elements, each told at its end.
 *
 *     <List><Name>b</Name><Item><Key>k</Key></Item></List>
 *         ->  "List/Name" b, "List/Item/Key" k, "List/Item", "List"
 *
 * A leaf comes with its text, another element with none; attributes are passed over, and prefixes
 * of names are dropped. It is expat that reads, with two rules more: a document type is refused (so
 * there are no entities to blow up), and everything has a bound. expat's hooks know no user, so its
 * memory is a heap that is process-wide; a parser of a store's answer takes 10 KiB of it.
 */
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "base/heap.h"

enum {
    TN_XML_PATH_SIZE = 160,
    TN_XML_TEXT_SIZE = 4096,              /* S3: keys have 1024 bytes, tokens are opaque */
    TN_XML_DOCUMENT_MAX = 8 * 1024 * 1024 /* bytes; 1000 of the longest keys of S3, and more */
};

/* The path and the text live until it returns. Other than OK: the text is not read on. */
typedef tn_rc tn_xml_element_fn(void *user, const char *path, struct tn_bytes text,
                                struct tn_err *err);

struct tn_xml {
    struct XML_ParserStruct *parser; /* NULL: nothing has come but white space */
    tn_xml_element_fn *element;
    void *user;
    struct tn_err *err; /* of the call that runs */
    tn_rc rc;           /* not OK: the text is not read on */
    uint32_t size;      /* bytes that came */
    bool leaf;          /* the open element has no element in it */
    char path[TN_XML_PATH_SIZE];
    struct tn_buf text; /* of the open element */
    unsigned char text_memory[TN_XML_TEXT_SIZE];
};

/* Once, before any thread. */
void tn_xml_use_heap(struct tn_heap *heap);

void tn_xml_init(struct tn_xml *xml, tn_xml_element_fn *element, void *user);
/* CORRUPT: not XML, or beyond a bound; AGAIN: the heap is full; or what `element` returned. */
TN_MUST_USE tn_rc tn_xml_add(struct tn_xml *xml, struct tn_bytes bytes, struct tn_err *err);
/* CORRUPT: it ends too early, or nothing came at all. */
TN_MUST_USE tn_rc tn_xml_finish(struct tn_xml *xml, struct tn_err *err);
/* Gives the parser back; twice is harmless. */
void tn_xml_deinit(struct tn_xml *xml);
