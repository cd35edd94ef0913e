--- The memory of a 16 MiB process on a PC; the shape that the other boards start from.
-- `kib` is a part's size, `min` what it keeps however small --memory makes the rest. One that is
-- `of` another is carved out of it when it is wanted: Lua's states, where a table has a script;
-- the network, where somebody opens its door; uploads, where there are lakes.
return {
    name = "host",
    other_kib = 1024, -- libc, stacks, code's relocations: outside the block
    unit_kib = 65536, -- files that a compaction takes at once, but for `compact --full`
    parts = {
        { name = "memtable", kind = "pool", kib = 5120, min = 512 },
        { name = "long", kind = "arena", kib = 4608, min = 2048 }, -- flush, compaction, scan
        { name = "short", kind = "arena", kib = 1280, min = 768 }, -- commit
        { name = "levels", kind = "heap", kib = 768, min = 192 },
        { name = "json", kind = "heap", kib = 256, min = 192 }, -- cJSON
        { name = "avro", kind = "heap", kib = 256, min = 192 }, -- avro-c and jansson
        { name = "table", kind = "arena", kib = 1152, min = 512 },
        { name = "input", kind = "arena", kib = 1920, min = 560 },
        { name = "lua_map", kind = "heap", kib = 640, min = 128, of = "memtable" },
        { name = "lua_merge", kind = "heap", kib = 640, min = 128, of = "memtable" },
        { name = "net", kind = "arena", kib = 160, min = 80, of = "memtable" }, -- with libuv
        { name = "tls", kind = "heap", kib = 256, min = 96, of = "memtable" }, -- 64 a stream
        { name = "upload", kind = "arena", kib = 1024, min = 64, of = "memtable" }, -- to lakes
        { name = "policy", kind = "heap", kib = 320, min = 8, of = "memtable" }, -- of lakes
    },
}
