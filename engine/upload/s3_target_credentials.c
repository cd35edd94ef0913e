#include "upload/s3_target_private.h"

/* Into the half of the memory that is not in use, so that what is in use stays if this fails. */
static tn_rc read_half(struct tn_s3_credentials *credentials, struct tn_s3_options *options,
                       struct tn_err *err)
{
    struct tn_bytes text = {NULL, 0};
    struct tn_arena arena;
    uint32_t half = 1 - credentials->half;
    tn_arena_init(&arena, credentials->memory + (size_t)half * TN_S3_CREDENTIALS_SIZE,
                  TN_S3_CREDENTIALS_SIZE);
    tn_rc rc = tn_io_read_all(credentials->io, credentials->path, TN_S3_CREDENTIALS_SIZE / 2,
                              &arena, &text, err);
    if (rc == TN_OK) {
        rc = tn_s3_options_file(options, text, credentials->profile, &arena, err);
    }
    if (rc == TN_OK && (!options->access_key[0] || !options->secret_key[0])) {
        rc = tn_err_set(err, TN_ABSENT, 0, "%s: a key is empty", credentials->path);
    }
    if (rc == TN_OK) {
        credentials->half = half;
    }
    return rc;
}

static tn_rc look(const struct tn_s3_credentials *credentials, uint64_t *size, int64_t *modified_ms,
                  struct tn_err *err)
{
    struct tn_io *io = credentials->io;
    tn_rc rc = io->vtable->stat(io, credentials->path, size, err);
    return rc == TN_OK ? io->vtable->modified(io, credentials->path, modified_ms, err) : rc;
}

tn_rc tn_s3_credentials_load(struct tn_s3_credentials *credentials, struct tn_s3_options *options,
                             struct tn_err *err)
{
    uint64_t size = 0;
    int64_t modified_ms = 0;
    if (!credentials->io || options->access_key || options->secret_key) {
        credentials->io = NULL;
        return TN_OK;
    }
    tn_rc rc = look(credentials, &size, &modified_ms, err);
    if (rc == TN_OK) {
        rc = read_half(credentials, options, err);
    }
    if (rc == TN_OK) {
        credentials->size = size;
        credentials->modified_ms = modified_ms;
    }
    return rc;
}

void tn_s3_credentials_refresh(struct tn_s3_target *target)
{
    struct tn_s3_credentials *credentials = &target->credentials;
    struct tn_s3_options options = {0};
    struct tn_err ignored;
    uint64_t size = 0;
    int64_t modified_ms = 0;
    const char *token;
    if (!credentials->io || look(credentials, &size, &modified_ms, &ignored) != TN_OK ||
        (size == credentials->size && modified_ms == credentials->modified_ms) ||
        read_half(credentials, &options, &ignored) != TN_OK) {
        return;
    }
    credentials->size = size;
    credentials->modified_ms = modified_ms;
    target->store.access_key = options.access_key;
    target->store.secret_key = options.secret_key;
    token = options.session_token;
    target->store.session_token = token && *token ? token : NULL;
}
