#include "upload/xml.h"

#include <expat.h>
#include <stdio.h>

#include "base/check.h"

/* ---- expat's memory ---- */

static struct tn_heap *xml_heap; /* set once, before any thread */

static void *hook_take(size_t size)
{
    return tn_heap_take(xml_heap, size);
}

static void *hook_resize(void *block, size_t size)
{
    return tn_heap_resize(xml_heap, block, size);
}

static void hook_give(void *block)
{
    tn_heap_give(xml_heap, block);
}

void tn_xml_use_heap(struct tn_heap *heap)
{
    xml_heap = heap;
}

/* ---- what expat tells ---- */

static void stop(struct tn_xml *xml, tn_rc rc)
{
    xml->rc = rc;
    (void)XML_StopParser(xml->parser, XML_FALSE);
}

static void on_start(void *user, const char *name, const char **attributes)
{
    struct tn_xml *xml = user;
    (void)attributes;
    if (xml->rc != TN_OK) {
        return;
    }
    const char *colon = strrchr(name, ':');
    name = colon ? colon + 1 : name;
    size_t size = strlen(xml->path);
    size_t room = sizeof xml->path - size;
    /* Depth needs no bound of its own: each level takes two bytes of the path at least. */
    if (*name == 0 || strchr(name, '/') || strlen(name) + 2 > room) {
        stop(xml, tn_err_set(xml->err, TN_CORRUPT, 0, "XML: nested too deep"));
        return;
    }
    (void)snprintf(xml->path + size, room, "%s%s", size > 0 ? "/" : "", name);
    xml->leaf = true;
    xml->text.size = 0;
}

static void on_text(void *user, const char *data, int size)
{
    struct tn_xml *xml = user;
    if (xml->rc != TN_OK || !xml->leaf) {
        return;
    }
    tn_buf_append(&xml->text, data, (size_t)size);
    if (xml->text.overflow) {
        stop(xml,
             tn_err_set(xml->err, TN_CORRUPT, 0, "XML: the text of %s is too long", xml->path));
    }
}

static void on_end(void *user, const char *name)
{
    struct tn_xml *xml = user;
    (void)name;
    if (xml->rc != TN_OK) {
        return;
    }
    struct tn_bytes text = {xml->text_memory, xml->leaf ? xml->text.size : 0};
    tn_rc rc = xml->element(xml->user, xml->path, text, xml->err);
    if (rc != TN_OK) {
        stop(xml, rc);
        return;
    }
    char *slash = strrchr(xml->path, '/');
    *(slash ? slash : xml->path) = 0;
    xml->leaf = false;
}

static void on_doctype(void *user, const char *name, const char *system, const char *public,
                       int has_internal)
{
    struct tn_xml *xml = user;
    (void)name;
    (void)system;
    (void)public;
    (void)has_internal;
    stop(xml, tn_err_set(xml->err, TN_CORRUPT, 0, "XML: it brings a document type of its own"));
}

/* ---- pieces ---- */

void tn_xml_init(struct tn_xml *xml, tn_xml_element_fn *element, void *user)
{
    xml->parser = NULL;
    xml->element = element;
    xml->user = user;
    xml->rc = TN_OK;
    xml->size = 0;
    xml->leaf = false;
    xml->path[0] = 0;
    tn_buf_init(&xml->text, xml->text_memory, sizeof xml->text_memory);
}

void tn_xml_deinit(struct tn_xml *xml)
{
    if (xml->parser) {
        XML_ParserFree(xml->parser);
        xml->parser = NULL;
    }
}

static tn_rc open_parser(struct tn_xml *xml, struct tn_err *err)
{
    static const XML_Memory_Handling_Suite hooks = {hook_take, hook_resize, hook_give};
    TN_CHECK(xml_heap);
    xml->parser = XML_ParserCreate_MM(NULL, &hooks, NULL);
    if (!xml->parser) {
        return tn_err_set(err, TN_AGAIN, 0, "XML: no room for a parser");
    }
    XML_SetUserData(xml->parser, xml);
    XML_SetElementHandler(xml->parser, on_start, on_end);
    XML_SetCharacterDataHandler(xml->parser, on_text);
    XML_SetStartDoctypeDeclHandler(xml->parser, on_doctype);
    return TN_OK;
}

static tn_rc parse(struct tn_xml *xml, struct tn_bytes bytes, bool last, struct tn_err *err)
{
    xml->err = err;
    enum XML_Status status =
        XML_Parse(xml->parser, (const char *)bytes.data, (int)bytes.size, last ? 1 : 0);
    xml->err = NULL;
    if (xml->rc != TN_OK || status == XML_STATUS_OK) {
        return xml->rc;
    }
    enum XML_Error code = XML_GetErrorCode(xml->parser);
    xml->rc = code == XML_ERROR_NO_MEMORY
                  ? tn_err_set(err, TN_AGAIN, 0, "XML: its heap is full")
                  : tn_err_set(err, TN_CORRUPT, 0, "XML: byte %ld: %s",
                               (long)XML_GetCurrentByteIndex(xml->parser), XML_ErrorString(code));
    return xml->rc;
}

/* A server that needs long for an answer sends white space meanwhile, also before the declaration,
 * where XML wants none. */
static struct tn_bytes skip_space(struct tn_bytes bytes)
{
    while (bytes.size > 0 && memchr(" \t\r\n", bytes.data[0], 4)) {
        bytes.data++;
        bytes.size--;
    }
    return bytes;
}

tn_rc tn_xml_add(struct tn_xml *xml, struct tn_bytes bytes, struct tn_err *err)
{
    if (xml->rc != TN_OK) {
        return tn_err_set(err, xml->rc, 0, "XML: it was given up");
    }
    if (bytes.size > TN_XML_DOCUMENT_MAX - xml->size) {
        xml->rc = tn_err_set(err, TN_CORRUPT, 0, "XML: longer than %d bytes", TN_XML_DOCUMENT_MAX);
        return xml->rc;
    }
    xml->size += (uint32_t)bytes.size;
    if (!xml->parser) {
        bytes = skip_space(bytes);
        if (bytes.size == 0) {
            return TN_OK;
        }
        xml->rc = open_parser(xml, err);
        if (xml->rc != TN_OK) {
            return xml->rc;
        }
    }
    return parse(xml, bytes, false, err);
}

tn_rc tn_xml_finish(struct tn_xml *xml, struct tn_err *err)
{
    if (xml->rc != TN_OK) {
        return tn_err_set(err, xml->rc, 0, "XML: it was given up");
    }
    if (!xml->parser) {
        return tn_err_set(err, TN_CORRUPT, 0, "XML: there is none");
    }
    return parse(xml, (struct tn_bytes){(const unsigned char *)"", 0}, true, err);
}
