/* tarn help: the guide, compiled in for boxes that are offline. */
#include <stdio.h>

#include "app/cmd.h"
#include "app/guide.h"
#include "base/check.h"
#include "schema/options.h"
#include "schema/types.h"

/* ---- options: from the one array that the engine obeys ---- */

enum { OPTIONS_SIZE = 64 * 1024, LINE_PARTS = 5, TOPICS_MAX = 32 };

/* Takes the text before the next `end` off `text`. */
static struct tn_bytes take(struct tn_bytes *text, char end)
{
    const unsigned char *at = memchr(text->data, end, text->size);
    size_t size = at ? (size_t)(at - text->data) : text->size;
    struct tn_bytes taken = {text->data, size};
    size += at != NULL;
    *text = (struct tn_bytes){text->data + size, text->size - size};
    return taken;
}

static void say_options_of(struct tn_bytes text, const char *duty, const char *heading)
{
    (void)fprintf(stdout, "\n%s\n\n", heading);
    while (text.size > 0) {
        struct tn_bytes line = take(&text, '\n');
        struct tn_bytes parts[LINE_PARTS]; /* name, type, default, duty, help */
        for (int i = 0; i < LINE_PARTS; i++) {
            parts[i] = take(&line, '\t');
        }
        if (tn_bytes_equal(parts[3], tn_bytes_of(duty))) {
            (void)fprintf(stdout, "  %-44.*s %.*s%s%.*s\n", (int)parts[0].size,
                          (const char *)parts[0].data, (int)parts[4].size,
                          (const char *)parts[4].data, parts[2].size ? "; default " : "",
                          (int)parts[2].size, (const char *)parts[2].data);
        }
    }
}

static int say_options(void)
{
    static char text[OPTIONS_SIZE];
    struct tn_buf lines;
    tn_buf_init(&lines, text, sizeof text);
    tn_options_help(&lines);
    struct tn_bytes all = tn_buf_bytes(&lines);
    (void)fputs("Table options: `tarn create --option KEY=VALUE`, or in the schema file.\n"
                "`tarn show D.T options` prints those of a table.\n",
                stdout);
    say_options_of(all, "obeyed", "Obeyed:");
    say_options_of(all, "refused", "Refused by name, unless they ask for nothing:");
    say_options_of(all, "harmless", "Kept in the table and of no concern to tarn:");
    return 0;
}

/* ---- topics ---- */

static void say_topics(FILE *to)
{
    (void)fputs("\nTopics of `tarn help TOPIC`:\n\n", to);
    for (uint32_t i = 0; i < tn_guide_count; i++) {
        (void)fprintf(to, "  %-12s %s\n", tn_guide[i].name, tn_guide[i].summary);
    }
    (void)fprintf(to, "  %-12s %s\n", "options", "every table option, and what tarn makes of it");
}

static int unknown(const char *topic)
{
    const char *names[TOPICS_MAX + 1];
    uint32_t count = 0;
    TN_CHECK(tn_guide_count <= TOPICS_MAX);
    for (; count < tn_guide_count; count++) {
        names[count] = tn_guide[count].name;
    }
    names[count++] = "options";
    const char *near = tn_nearest_name(tn_bytes_of(topic), names, count);
    (void)fprintf(stderr,
                  near ? "tarn: help: '%s' is unknown; did you mean '%s'?\n"
                       : "tarn: help: '%s' is unknown; `tarn help` lists topics and verbs\n",
                  topic, near);
    return 2;
}

static int run(const struct tn_text_list *words)
{
    if (words->count > 1) {
        return tn_say_usage(&tn_cmd_help);
    }
    if (words->count == 0) {
        tn_say_overview(stdout);
        say_topics(stdout);
        return 0;
    }
    const char *topic = words->items[0];
    struct tn_bytes text = tn_guide_text(topic);
    if (text.data) {
        (void)fwrite(text.data, 1, text.size, stdout);
        return 0;
    }
    if (strcmp(topic, "options") == 0) {
        return say_options();
    }
    return tn_say_help(topic) ? 0 : unknown(topic);
}

const struct tn_command tn_cmd_help = {
    "help", "help [TOPIC|VERB]", "prints the guide", NULL, 0, run,
};
