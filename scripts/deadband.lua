--- A temperature that is told when it has moved by half a degree, and a switch with two thresholds.
--
-- The table always has the newest reading. Followers of its changelog see `temp` only when it has
-- left the band around what they were told last, and `hot`, which goes on above 80 and off below
-- 75. What was told is a column, `temp_told`: it survives a restart, and a slow ramp of small steps
-- is told as soon as it has added up to half a degree.
--
--     tarn create plant.boilers --field 'dev STRING' --field 'ts TIMESTAMP(3)' \
--         --field 'temp DOUBLE' --field 'temp_told DOUBLE' --field 'hot BOOLEAN' \
--         --primary-key dev --option bucket=1 --option changelog-producer=input \
--         --option tarn.script=scripts/deadband.lua

local deadband = require("tarn.deadband")

local BAND = 0.5
local ON, OFF = 80, 75

local m = {}

function m.merge(now, row)
    if now and row.ts < now.ts then
        return tarn.KEEP
    end
    row.temp_told = deadband(now and now.temp_told, row.temp, BAND)
    row.hot = deadband.hysteresis(now and now.hot, row.temp, OFF, ON)
    return row
end

function m.announce(row)
    return { dev = row.dev, temp = row.temp_told, hot = row.hot }
end

m.test = {
    {
        name = "the first reading is told",
        merge = { nil, { ts = 1, temp = 20.0 } },
        gives = { temp = 20, temp_told = 20, hot = false },
    },
    {
        name = "a small step is not",
        merge = { { ts = 1, temp = 20, temp_told = 20 }, { ts = 2, temp = 20.3 } },
        gives = { temp = 20.3, temp_told = 20 },
    },
    {
        name = "but the next one is: a ramp adds up",
        merge = { { ts = 2, temp = 20.3, temp_told = 20 }, { ts = 3, temp = 20.6 } },
        gives = { temp_told = 20.6 },
    },
    {
        name = "hot above 80",
        merge = { { ts = 1, temp_told = 79, hot = false }, { ts = 2, temp = 80.5 } },
        gives = { hot = true },
    },
    {
        name = "still hot at 76",
        merge = { { ts = 1, temp_told = 81, hot = true }, { ts = 2, temp = 76.0 } },
        gives = { hot = true },
    },
    {
        name = "a late reading is left out",
        merge = { { ts = 5, temp = 20 }, { ts = 4, temp = 90.0 } },
        gives = tarn.KEEP,
    },
    {
        name = "followers see what was told",
        announce = { { ts = 1, temp = 20.3, temp_told = 20, hot = false } },
        gives = { temp = 20, hot = false, ts = nil },
    },
}

return m
