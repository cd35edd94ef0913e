#include "script/pair.h"

#include <string.h>

static tn_rc load(struct tn_script_pair *pair, enum tn_script_place place,
                  const struct tn_script_pair_spec *spec, struct tn_err *err)
{
    struct tn_vm *vm = &pair->vms[place];
    struct tn_vm_spec state = {.memory = spec->memory[place],
                               .size = spec->size[place],
                               .io = spec->io,
                               .seed = spec->seed,
                               .log = spec->log,
                               .user = spec->user};
    struct tn_script_spec script = spec->script;
    script.skip_cases = script.skip_cases || place == TN_SCRIPT_LOOP;
    tn_rc rc = tn_vm_open(vm, &state, err);
    if (rc == TN_OK) {
        rc = tn_script_load(&pair->scripts[place], vm, &script, err);
    }
    vm->spec.io = NULL;
    return rc;
}

static void list_properties(struct tn_script_pair *pair)
{
    static const char *const NAMES[TN_SCRIPT_HANDLER_COUNT] = {
        [TN_SCRIPT_MAP] = "tarn.script.map",         [TN_SCRIPT_MERGE] = "tarn.script.merge",
        [TN_SCRIPT_RETRACT] = "tarn.script.retract", [TN_SCRIPT_ANNOUNCE] = "tarn.script.announce",
        [TN_SCRIPT_UPLOAD] = "tarn.script.upload",   [TN_SCRIPT_UPLOADED] = "tarn.script.uploaded",
    };
    const struct tn_script *script = &pair->scripts[TN_SCRIPT_WORKER];
    for (int i = 0; i < TN_SCRIPT_HANDLER_COUNT; i++) {
        if (tn_script_has(script, (enum tn_script_handler)i)) {
            pair->properties[pair->property_count++] =
                (struct tn_property){NAMES[i], script->digest};
        }
    }
}

tn_rc tn_script_pair_open(struct tn_script_pair *pair, const struct tn_script_pair_spec *spec,
                          struct tn_err *err)
{
    struct tn_script *const scripts = pair->scripts;
    pair->property_count = 0;
    tn_rc rc = load(pair, TN_SCRIPT_WORKER, spec, err);
    if (rc == TN_OK) {
        rc = load(pair, TN_SCRIPT_LOOP, spec, err);
    }
    if (rc == TN_OK &&
        strcmp(scripts[TN_SCRIPT_LOOP].digest, scripts[TN_SCRIPT_WORKER].digest) != 0) {
        rc = tn_err_set(err, TN_AGAIN, 0, "%s was changed while it was loaded", spec->script.path);
    }
    if (rc == TN_OK) {
        list_properties(pair);
        tn_script_resolver_init(&pair->resolver, &scripts[TN_SCRIPT_WORKER], spec->late_by);
    }
    return rc;
}

void tn_script_pair_close(struct tn_script_pair *pair)
{
    for (int place = 0; place < TN_SCRIPT_PLACES; place++) {
        tn_vm_close(&pair->vms[place]);
    }
}
