/* gen: a stream of sensor changes, the same on every machine.
 *
 *     gen W1|W2|W3|W4 ROWS raw|json|csv FILE     '-' is stdout
 *     gen check FILE.raw                         the merged table's sums, to hold a peer against
 *
 *     W1  every key once, in random order
 *     W2  100,000 keys, zipf 0.99: hot upserts
 *     W3  W2, and 5% of the updates are deletes
 *     W4  W2, and 15% of the rows come 1..50,000 events late; the largest seq wins, on a tie the
 * later arrival
 *
 * JSON is Debezium's shape; csv has a header and no deletes, so no W3.
 */
#include "bench.h"

enum { KEY_COUNT = 100000, GUIDE_COUNT = 65536, METRICS = 20 };

static const uint64_t START_MS = 1764547200000u; /* 2025-12-01T00:00:00Z */
static const char *const UNITS[] = {"celsius", "percent", "hPa", "volt", "ampere",
                                    "lux",     "ppm",     "m/s", "kWh",  "liter/min"};

/* ---- random numbers: splitmix64 ---- */

static uint64_t mix64(uint64_t z)
{
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t result = mix64(*state);
    *state += 0x9E3779B97F4A7C15u;
    return result;
}

/* ---- zipf by the inverse of its sums, with a guide to where to begin looking ---- */

struct zipf {
    double sums[KEY_COUNT];
    uint32_t guide[GUIDE_COUNT + 1];
};

static void zipf_init(struct zipf *zipf)
{
    double sum = 0;
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        sum += pow(i + 1, -0.99);
        zipf->sums[i] = sum;
    }
    for (uint32_t i = 0; i < KEY_COUNT; i++) {
        zipf->sums[i] /= sum;
    }
    zipf->sums[KEY_COUNT - 1] = 1.0;
    uint32_t at = 0;
    for (uint32_t g = 0; g <= GUIDE_COUNT; g++) {
        while (at < KEY_COUNT - 1 && zipf->sums[at] < g / (double)GUIDE_COUNT) {
            at++;
        }
        zipf->guide[g] = at;
    }
}

static uint32_t zipf_next(const struct zipf *zipf, uint64_t *random)
{
    double u = (double)(next_random(random) >> 11) * (1.0 / 9007199254740992.0);
    uint32_t at = zipf->guide[(int)(u * GUIDE_COUNT)];
    while (zipf->sums[at] < u) {
        at++;
    }
    return at;
}

/* ---- rows ---- */

struct gen {
    int workload;
    uint64_t row_count;
    uint64_t key_count;
    uint64_t step; /* coprime to key_count: key i is i * step */
    uint64_t random;
    struct zipf zipf;
    uint8_t seen[KEY_COUNT / 8 + 1];
};

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void gen_init(struct gen *gen, int workload, uint64_t row_count)
{
    gen->workload = workload;
    gen->row_count = row_count;
    gen->key_count = workload == 1 ? row_count : KEY_COUNT;
    gen->step = (uint64_t)((double)gen->key_count * 0.6180339887) | 1;
    while (gcd(gen->step, gen->key_count) != 1) {
        gen->step += 2;
    }
    gen->random = 0x7461726eu * (uint64_t)workload;
    zipf_init(&gen->zipf);
}

static void fill_values(struct row *row, uint64_t key, uint64_t x, uint64_t y)
{
    double base = (double)(mix64(key) % 2000) / 100.0;
    row->v[0] = (double)((int64_t)(base * 100) + (int64_t)(x % 401) - 200) / 100.0;
    row->v[1] = (double)((int64_t)(base * 1000) + (int64_t)((x >> 16) % 2001) - 1000) / 1000.0;
    row->v[2] = (double)((x >> 32) % 10000) / 10.0;
    row->v[3] = round(((double)(y % 200001) / 1000.0 - 100.0) * 1000.0) / 1000.0;
    row->status = (y >> 20) % 50 == 0 ? (int32_t)((y >> 32) % 7) : 0;
    row->ok = (y >> 40) % 100 != 0;
}

static uint8_t choose_op(struct gen *gen, uint64_t key, uint64_t z)
{
    if (gen->workload == 1) {
        return OP_INSERT;
    }
    uint8_t bit = (uint8_t)(1u << (key & 7));
    bool first = !(gen->seen[key >> 3] & bit);
    gen->seen[key >> 3] |= bit;
    if (gen->workload == 3 && !first && z % 100 < 5) {
        gen->seen[key >> 3] &= (uint8_t)~bit;
        return OP_DELETE;
    }
    return first ? OP_INSERT : OP_UPDATE;
}

static void make_row(struct gen *gen, uint64_t i, struct row *row)
{
    memset(row, 0, sizeof *row);
    uint64_t place = gen->workload == 1 ? i : zipf_next(&gen->zipf, &gen->random);
    uint64_t key = (uint64_t)(((unsigned __int128)place * gen->step + 12345) % gen->key_count);
    uint64_t device = key / METRICS;
    row->metric = (int32_t)(key % METRICS);
    char text[32];
    (void)snprintf(text, sizeof text, "gw%02u-sn%010llu", (unsigned)(device % 100),
                   (unsigned long long)(device * 7919 % 10000000000u));
    text[15] = (char)('A' + device % 26);
    memcpy(row->device, text, sizeof row->device);
    row->ts = (int64_t)(START_MS + i * 5 + next_random(&gen->random) % 5);
    row->seq = (int64_t)i + 1;
    uint64_t x = next_random(&gen->random);
    uint64_t y = next_random(&gen->random);
    fill_values(row, key, x, y);
    const char *unit = UNITS[row->metric % 10];
    memcpy(row->unit, unit, strlen(unit));
    uint64_t z = next_random(&gen->random);
    row->op = choose_op(gen, key, z);
    if (gen->workload == 4 && z % 100 < 15) {
        int64_t late = (int64_t)((z >> 8) % 50000) + 1;
        row->seq = row->seq > late ? row->seq - late : 1;
        row->ts -= late * 5;
    }
}

/* ---- output ---- */

static void put_json(FILE *file, const struct row *row, uint64_t i)
{
    bool deleted = row->op == OP_DELETE;
    (void)fprintf(file, "%s{\"device_id\":\"%.16s\",\"metric\":%d",
                  deleted ? "{\"before\":" : "{\"before\":null,\"after\":", row->device,
                  row->metric);
    if (!deleted) {
        (void)fprintf(file, ",\"ts\":%lld", (long long)row->ts);
        for (int k = 0; k < 4; k++) {
            (void)fprintf(file, ",\"v%d\":%.10g", k + 1, row->v[k]);
        }
        (void)fprintf(file, ",\"status\":%d", row->status);
    }
    (void)fprintf(file, ",\"seq\":%lld", (long long)row->seq);
    if (!deleted) {
        (void)fprintf(file, ",\"unit\":\"%.12s\",\"ok\":%s", row->unit, row->ok ? "true" : "false");
    }
    unsigned long long now = START_MS + i * 5 + 7;
    (void)fprintf(file,
                  "}%s,\"source\":{\"connector\":\"sensor\",\"name\":\"gw1\",\"ts_ms\":%llu,"
                  "\"pos\":%llu},\"op\":\"%c\",\"ts_ms\":%llu}\n",
                  deleted ? ",\"after\":null" : "", now, (unsigned long long)i, "c?ud"[row->op],
                  now + 3);
}

static void put_csv(FILE *file, const struct row *row)
{
    (void)fprintf(file, "%.16s,%d,%lld,%.10g,%.10g,%.10g,%.10g,%d,%lld,%.12s,%s\n", row->device,
                  row->metric, (long long)row->ts, row->v[0], row->v[1], row->v[2], row->v[3],
                  row->status, (long long)row->seq, row->unit, row->ok ? "true" : "false");
}

static void put_head(FILE *file, char form, const struct gen *gen)
{
    if (form == 'r') {
        struct raw_header header = {"TRNRAW1", 1, (uint32_t)gen->workload, gen->row_count, 0};
        (void)fwrite(&header, sizeof header, 1, file);
    } else if (form == 'c') {
        (void)fputs("device_id,metric,ts,v1,v2,v3,v4,status,seq,unit,ok\n", file);
    }
}

static int generate(struct gen *gen, char form, const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    if (!file) {
        die(path);
    }
    put_head(file, form, gen);
    for (uint64_t i = 0; i < gen->row_count; i++) {
        struct row row;
        make_row(gen, i, &row);
        if (form == 'r') {
            (void)fwrite(&row, sizeof row, 1, file);
        } else if (form == 'j') {
            put_json(file, &row, i);
        } else {
            put_csv(file, &row);
        }
    }
    if (fclose(file) != 0) {
        die(path);
    }
    return 0;
}

/* ---- what the table must hold: a hash table, in the order of arrival ---- */

static uint64_t hash_key(const struct row *row)
{
    uint64_t a;
    uint64_t b;
    memcpy(&a, row->device, 8);
    memcpy(&b, row->device + 8, 8);
    return mix64(mix64(a) ^ b ^ ((uint64_t)(uint32_t)row->metric << 40));
}

static int check(const char *path)
{
    struct raw raw;
    raw_open(&raw, path);
    uint64_t size = 1;
    while (size < raw.header.row_count * 2) {
        size <<= 1;
    }
    struct row *table = calloc(size, sizeof *table); /* a free slot has no device */
    if (!table) {
        die("memory");
    }
    for (size_t count; (count = raw_next(&raw)) > 0;) {
        for (size_t i = 0; i < count; i++) {
            const struct row *row = &raw.rows[i];
            uint64_t at = hash_key(row) & (size - 1);
            while (table[at].device[0] && (memcmp(table[at].device, row->device, 16) != 0 ||
                                           table[at].metric != row->metric)) {
                at = (at + 1) & (size - 1);
            }
            if (!table[at].device[0] || raw.header.workload != 4 || row->seq >= table[at].seq) {
                table[at] = *row;
            }
        }
    }
    struct sums sums = {0};
    for (uint64_t i = 0; i < size; i++) {
        if (table[i].device[0] && table[i].op != OP_DELETE) {
            sums_add(&sums, &table[i]);
        }
    }
    sums_print(&sums);
    return 0;
}

int main(int argc, char **argv)
{
    static struct gen gen; /* too large for a stack */
    if (argc == 3 && strcmp(argv[1], "check") == 0) {
        return check(argv[2]);
    }
    bool known =
        argc == 5 && argv[1][0] == 'W' && strchr("1234", argv[1][1]) && strchr("rjc", argv[3][0]);
    if (!known || (argv[3][0] == 'c' && argv[1][1] == '3')) {
        (void)fputs(
            "usage: gen W1|W2|W3|W4 ROWS raw|json|csv FILE (no W3 in csv), gen check FILE.raw\n",
            stderr);
        return 2;
    }
    gen_init(&gen, argv[1][1] - '0', strtoull(argv[2], NULL, 10));
    return generate(&gen, argv[3][0], argv[4]);
}
