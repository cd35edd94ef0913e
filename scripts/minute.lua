--- A busy signal, told at most once a minute and key.
--
-- A vibration sensor sends ten values a second. The table has the newest and the largest since the
-- last telling; followers of the changelog see a row a minute at most, with that peak. It is told
-- by the first row that comes when the minute is over: while rows come, none is later than that. A
-- key that falls silent keeps its last value untold.
--
--     tarn create plant.vibration --field 'dev STRING' --field 'ts TIMESTAMP(3)' \
--         --field 'g DOUBLE' --field 'g_peak DOUBLE' --field 'told_ts TIMESTAMP(3)' \
--         --field 'told_peak DOUBLE' --primary-key dev --option bucket=1 \
--         --option changelog-producer=input --option tarn.script=scripts/minute.lua

local MINUTE = 60000 -- ms

local m = {}

function m.merge(now, row)
    local peak = tarn.fold.max(now and now.g_peak, row.g)
    if tarn.window.due(now and now.told_ts, row.ts, MINUTE) then
        row.told_ts, row.told_peak, row.g_peak = row.ts, peak, nil
    else
        row.told_ts, row.told_peak, row.g_peak = now.told_ts, now.told_peak, peak
    end
    return row
end

function m.announce(row)
    return { dev = row.dev, ts = row.told_ts, g = row.told_peak }
end

m.test = {
    {
        name = "the first value is told",
        merge = { nil, { ts = 1000, g = 0.5 } },
        gives = { told_ts = 1000, told_peak = 0.5 },
    },
    {
        name = "the next ones are kept",
        merge = { { ts = 1000, told_ts = 1000, told_peak = 0.5 }, { ts = 1100, g = 2.5 } },
        gives = { g = 2.5, g_peak = 2.5, told_ts = 1000, told_peak = 0.5 },
    },
    {
        name = "a minute later the peak is told",
        merge = {
            { ts = 60900, g_peak = 2.5, told_ts = 1000, told_peak = 0.5 },
            { ts = 61000, g = 0.25 },
        },
        gives = function(row)
            return row.told_ts == 61000 and row.told_peak == 2.5 and row.g_peak == nil
        end,
    },
    {
        name = "followers see only that",
        announce = { { ts = 1100, g = 2.5, g_peak = 2.5, told_ts = 1000, told_peak = 0.5 } },
        gives = { ts = 1000, g = 0.5 },
    },
}

return m
