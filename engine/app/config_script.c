/* The script of a configuration's table: it is loaded, and its cases run, as the daemon would. */
#include "app/config_private.h"
#include "base/hash.h"
#include "schema/default.h"
#include "script/script.h"
#include "script/scripted.h"

struct place {
    struct tn_vm vm;
    struct tn_script script;
    struct tn_row_layout layout;
    struct tn_columns late_by;
    struct tn_io_posix files;
};

static tn_rc load(struct tn_config_reader *r, struct place *p, const struct tn_schema *schema,
                  const char *table, const char *name, struct tn_err *err)
{
    struct tn_vm_spec vm = {.memory = r->vm_memory,
                            .size = r->vm_size < TN_VM_SIZE ? r->vm_size : TN_VM_SIZE,
                            .io = &p->files.io,
                            .seed = tn_hash_64(tn_bytes_of(table), 0)};
    struct tn_script_spec spec = {
        .path = name, .layout = &p->layout, .keys = schema->primary_keys, .table = table};
    tn_rc rc = tn_schema_layout(schema, &p->layout, NULL, NULL, &r->scratch, err);
    if (rc == TN_OK) {
        rc = tn_scripted_late(schema, &r->scratch, &p->late_by, err);
    }
    if (rc == TN_OK) {
        rc = tn_default_row_make(schema, &p->layout, &r->scratch, &spec.defaults, err);
    }
    if (rc == TN_OK) {
        rc = tn_vm_open(&p->vm, &vm, err);
    }
    if (rc == TN_OK) {
        rc = tn_script_load(&p->script, &p->vm, &spec, err);
    }
    tn_vm_close(&p->vm);
    return rc;
}

tn_rc tn_config_check_script(struct tn_config_reader *r, const struct tn_schema *schema,
                             const char *table, const char *path, struct tn_err *err)
{
    const char *folder = NULL;
    const char *name = NULL;
    void *memory;
    tn_rc rc = tn_arena_need(&r->scratch, sizeof(struct place), "a script", &memory, err);
    if (rc == TN_OK) {
        rc = tn_config_folder(&r->scratch, path, &folder, &name, err);
    }
    struct place *p = memory;
    if (rc == TN_OK) {
        rc = tn_io_posix_open(&p->files, folder[0] ? folder : "/", err);
    }
    if (rc == TN_OK) {
        rc = load(r, p, schema, table, name, err);
        tn_io_posix_close(&p->files);
    }
    return rc;
}
