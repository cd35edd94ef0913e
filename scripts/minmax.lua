--- Minimum, maximum, mean, last and count of each sensor, minute by minute.
--
-- A boiler sends a temperature a second; the lake needs a row a minute. `map` finds the minute that
-- a reading is in and makes it part of the key, so a reading that comes late goes to its own
-- minute. `merge` folds it in. Readings come in any order; only `temp_last` looks at the time.
--
--     tarn create plant.minutes --field 'dev STRING' --field 'minute TIMESTAMP(3)' \
--         --field 'ts TIMESTAMP(3)' --field 'temp DOUBLE' --field 'temp_min DOUBLE' \
--         --field 'temp_max DOUBLE' --field 'temp_mean DOUBLE' --field 'temp_last DOUBLE' \
--         --field 'samples BIGINT' --primary-key dev,minute --option bucket=1 \
--         --option tarn.script=scripts/minmax.lua

local fold = require("tarn.fold")

local MINUTE = 60000 -- ms

local m = {}

function m.map(record)
    record.minute = tarn.window.start(record.ts, MINUTE)
    return record
end

function m.merge(now, row)
    local value = row.temp
    if not now then
        row.temp_min, row.temp_max, row.temp_last = value, value, value
        row.temp_mean, row.samples = fold.mean(nil, value)
        return row
    end
    now.temp_min = fold.min(now.temp_min, value)
    now.temp_max = fold.max(now.temp_max, value)
    now.temp_mean, now.samples = fold.mean(now.temp_mean, value, now.samples)
    if row.ts >= now.ts then
        now.ts, now.temp, now.temp_last = row.ts, value, fold.last(now.temp_last, value)
    end
    return now
end

m.test = {
    {
        name = "a reading is in its minute",
        map = { { dev = "a", ts = 125000, temp = 3.5 } },
        gives = { { dev = "a", minute = 120000, temp = 3.5 } },
    },
    {
        name = "the first reading is all there is",
        merge = { nil, { ts = 1000, temp = 3.0 } },
        gives = { temp_min = 3, temp_max = 3, temp_mean = 3, temp_last = 3, samples = 1 },
    },
    {
        name = "the next one moves what it can",
        merge = {
            { ts = 1000, temp_min = 3, temp_max = 5, temp_mean = 4, temp_last = 3, samples = 2 },
            { ts = 2000, temp = 7.0 },
        },
        gives = { temp_min = 3, temp_max = 7, temp_mean = 5, temp_last = 7, samples = 3 },
    },
    {
        name = "an older one is counted but is not the last",
        merge = {
            { ts = 2000, temp_min = 3, temp_max = 5, temp_mean = 4, temp_last = 5, samples = 2 },
            { ts = 1000, temp = 1.0 },
        },
        gives = { ts = 2000, temp_min = 1, temp_last = 5, temp_mean = 3, samples = 3 },
    },
    {
        name = "a reading without a value changes nothing",
        merge = {
            { ts = 1000, temp_min = 3, temp_max = 3, temp_mean = 3, temp_last = 3, samples = 1 },
            { ts = 2000 },
        },
        gives = { temp_min = 3, temp_mean = 3, temp_last = 3, samples = 1 },
    },
}

return m
