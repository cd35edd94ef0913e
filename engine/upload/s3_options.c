#include <stddef.h>

#include "upload/http.h"
#include "upload/s3_store.h"

/* ---- options ---- */

struct option_name {
    const char *name; /* with '-' between its words */
    size_t offset;
};

#define OPTION(name, member)                           \
    {                                                  \
        (name), offsetof(struct tn_s3_options, member) \
    }

static const struct option_name option_names[] = {
    OPTION("endpoint", endpoint),
    OPTION("access-key", access_key),
    OPTION("accessKeyId", access_key),
    OPTION("secret-key", secret_key),
    OPTION("accessKeySecret", secret_key),
    OPTION("session-token", session_token),
    OPTION("security-token", session_token),
    OPTION("securityToken", session_token),
    OPTION("region", region),
    OPTION("endpoint-region", region),
    OPTION("path-style-access", path_style),
    OPTION("connection-ssl-enabled", tls),
};

static const char **member_at(struct tn_s3_options *options, size_t offset)
{
    return (const char **)(void *)((char *)options + offset);
}

static bool same_words(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        if ((*a == '.' ? '-' : *a) != *b) {
            return false;
        }
    }
    return *a == *b;
}

static const char *after_prefix(const char *name)
{
    static const char *const prefixes[] = {"s3.", "s3a.", "fs.s3a.", "fs.s3."};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t size = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], size) == 0) {
            return name + size;
        }
    }
    return NULL;
}

bool tn_s3_option(struct tn_s3_options *options, const char *name, const char *value)
{
    name = after_prefix(name);
    if (!name) {
        return false;
    }
    for (size_t i = 0; i < sizeof option_names / sizeof option_names[0]; i++) {
        if (same_words(name, option_names[i].name)) {
            *member_at(options, option_names[i].offset) = value;
            return true;
        }
    }
    return false;
}

/* An empty variable is one that isn't there. */
static void from_environment(const char **member, tn_s3_environment_fn *get, void *user,
                             const char *name)
{
    const char *value = *member ? NULL : get(user, name);
    if (value && *value) {
        *member = value;
    }
}

void tn_s3_options_environment(struct tn_s3_options *options, tn_s3_environment_fn *get, void *user)
{
    if (!options->access_key && !options->secret_key && !options->session_token) {
        from_environment(&options->access_key, get, user, "AWS_ACCESS_KEY_ID");
        from_environment(&options->secret_key, get, user, "AWS_SECRET_ACCESS_KEY");
        from_environment(&options->session_token, get, user, "AWS_SESSION_TOKEN");
    }
    from_environment(&options->region, get, user, "AWS_REGION");
    from_environment(&options->region, get, user, "AWS_DEFAULT_REGION");
    from_environment(&options->endpoint, get, user, "AWS_ENDPOINT_URL_S3");
    from_environment(&options->endpoint, get, user, "AWS_ENDPOINT_URL");
}

/* ---- the file of credentials ---- */

static struct tn_bytes take_line(struct tn_bytes *rest)
{
    const unsigned char *end = memchr(rest->data, '\n', rest->size);
    struct tn_bytes line = {rest->data, end ? (size_t)(end - rest->data) : rest->size};
    size_t size = line.size + (end != NULL);
    rest->data += size;
    rest->size -= size;
    line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
    return tn_http_trim(line);
}

static bool is_heading(struct tn_bytes line)
{
    return line.size >= 2 && line.data[0] == '[' && line.data[line.size - 1] == ']';
}

static bool is_profile(struct tn_bytes line, const char *profile)
{
    struct tn_bytes name = tn_http_trim((struct tn_bytes){line.data + 1, line.size - 2});
    return tn_bytes_equal(name, tn_bytes_of(profile));
}

/* Other names than the three are other programs'. */
static tn_rc take_key(struct tn_s3_options *found, struct tn_bytes line, struct tn_arena *arena,
                      struct tn_err *err)
{
    static const struct option_name names[] = {
        OPTION("aws_access_key_id", access_key),
        OPTION("aws_secret_access_key", secret_key),
        OPTION("aws_session_token", session_token),
    };
    const unsigned char *equals = line.size > 0 ? memchr(line.data, '=', line.size) : NULL;
    if (!equals) {
        return TN_OK;
    }
    struct tn_bytes name = tn_http_trim((struct tn_bytes){line.data, (size_t)(equals - line.data)});
    struct tn_bytes value =
        tn_http_trim((struct tn_bytes){equals + 1, line.size - (size_t)(equals - line.data) - 1});
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (tn_http_same(name, names[i].name)) {
            const char *text = tn_arena_text(arena, value);
            if (!text) {
                return tn_err_set(err, TN_AGAIN, 0, "credentials: no room for a key");
            }
            *member_at(found, names[i].offset) = text;
        }
    }
    return TN_OK;
}

tn_rc tn_s3_options_file(struct tn_s3_options *options, struct tn_bytes text, const char *profile,
                         struct tn_arena *arena, struct tn_err *err)
{
    struct tn_s3_options found = {0};
    bool inside = false;
    if (options->access_key || options->secret_key || options->session_token) {
        return TN_OK;
    }
    while (text.size > 0) {
        struct tn_bytes line = take_line(&text);
        if (is_heading(line)) {
            inside = is_profile(line, profile);
        } else if (inside && line.size > 0 && line.data[0] != '#' && line.data[0] != ';') {
            tn_rc rc = take_key(&found, line, arena, err);
            if (rc != TN_OK) {
                return rc;
            }
        }
    }
    if (!found.access_key || !found.secret_key) {
        return tn_err_set(err, TN_ABSENT, 0, "credentials: there are no keys of [%s]", profile);
    }
    options->access_key = found.access_key;
    options->secret_key = found.secret_key;
    options->session_token = found.session_token;
    return TN_OK;
}
