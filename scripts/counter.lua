--- An energy meter's total, which goes on when the meter begins again at zero.
--
-- The meter counts in its own register (`raw`, watt hours since its last start). `total` is what
-- was used since the first reading: it grows by what the register has grown, and when the register
-- is smaller than before, the meter was restarted and has counted `raw` since. Late readings of the
-- same run are left out; `restarts` counts.
--
--     tarn create plant.meters --field 'meter STRING' --field 'ts TIMESTAMP(3)' \
--         --field 'raw BIGINT' --field 'total BIGINT' --field 'restarts BIGINT' \
--         --primary-key meter --option bucket=1 --option tarn.script=scripts/counter.lua

local m = {}

function m.merge(now, row)
    if not now then
        row.total, row.restarts = 0, 0
        return row
    end
    if row.raw == nil or row.ts < now.ts then
        return tarn.KEEP
    end
    local restarted = row.raw < now.raw
    row.total = now.total + (restarted and row.raw or row.raw - now.raw)
    row.restarts = now.restarts + (restarted and 1 or 0)
    return row
end

m.test = {
    {
        name = "it begins at nothing used",
        merge = { nil, { ts = 1, raw = 5000 } },
        gives = { raw = 5000, total = 0, restarts = 0 },
    },
    {
        name = "it grows as the register does",
        merge = { { ts = 1, raw = 5000, total = 70, restarts = 0 }, { ts = 2, raw = 5030 } },
        gives = { total = 100, restarts = 0 },
    },
    {
        name = "a restart costs nothing",
        merge = { { ts = 2, raw = 5030, total = 100, restarts = 0 }, { ts = 3, raw = 12 } },
        gives = { raw = 12, total = 112, restarts = 1 },
    },
    {
        name = "a late reading is no restart",
        merge = { { ts = 3, raw = 12, total = 112, restarts = 1 }, { ts = 2, raw = 11 } },
        gives = tarn.KEEP,
    },
}

return m
