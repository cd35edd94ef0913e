/* A program that embeds tarn: it knows only tarn.h. Makes a table in a folder, writes two rows and
 * reads them back. */
#include <stdio.h>
#include <string.h>

#include "tarn.h"
#include "temp.h"

#define TRY(call)                                  \
    if ((call) != TARN_OK) {                       \
        (void)fprintf(stderr, "%s\n", error.text); \
        return 1;                                  \
    }

int main(void)
{
    static const char schema[] = "{\"fields\":[{\"name\":\"device\",\"type\":\"STRING\"},{\"name\":"
                                 "\"temp\",\"type\":\"DOUBLE\"}],"
                                 "\"primaryKeys\":[\"device\"],\"options\":{\"bucket\":\"1\"}}";
    char folder[TEMP_SIZE];
    temp_make(folder);
    tarn_engine_options options = {.size = sizeof options, .warehouse = folder};
    tarn_error error = {0};
    tarn_engine *engine;
    tarn_table *table;
    tarn_scan *scan;
    TRY(tarn_open(&options, &engine, &error));
    TRY(tarn_create(engine, "plant.sensors", schema, &error));
    tarn_table_options write = {.size = sizeof write, .name = "plant.sensors"};
    TRY(tarn_table_open(engine, &write, &table, &error));
    TRY(tarn_put_json(table, TARN_INSERT, "{\"device\":\"a\",\"temp\":20.5}", 26, &error));
    tarn_row_begin(table, TARN_INSERT);
    TRY(tarn_row_set_text(table, tarn_table_column(table, "device"), "b", 1, &error));
    TRY(tarn_row_set_double(table, tarn_table_column(table, "temp"), 81, &error));
    TRY(tarn_put(table, &error));
    TRY(tarn_commit(table, NULL, &error));
    tarn_table_close(table);
    tarn_scan_options read = {.size = sizeof read, .table = "plant.sensors", .where = "temp > 80"};
    TRY(tarn_scan_open(engine, &read, &scan, &error));
    const char *row;
    size_t size;
    TRY(tarn_scan_next(scan, &error));
    TRY(tarn_scan_json(scan, &row, &size, &error));
    int same = strcmp(row, "{\"device\":\"b\",\"temp\":81.0}") == 0;
    (void)printf("%s\n%d passed, %d failed\n", row, same, !same);
    tarn_close(engine);
    temp_remove(folder);
    return !same;
}
