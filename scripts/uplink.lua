--- A gateway behind a SIM card sends a little at a time, and all of it where the link is free.
--
-- On a metered link snapshots wait until they are worth a connection: 5 MB, or an hour. They go
-- slowly then, so that people's calls get through. A day has a budget; when it is spent, only a
-- disk that fills up is a reason to send, for what waits is held on it. On a free link everything
-- goes at once.
--
--     tarn create plant.levels --field 'tank STRING' --field 'ts TIMESTAMP(3)' \
--         --field 'level DOUBLE' --primary-key tank --option bucket=1 \
--         --option tarn.script=scripts/uplink.lua

local ENOUGH_BYTES = 5000000
local LONG_ENOUGH_S = 3600
local BYTES_A_DAY = 50000000
local ASK_AGAIN_S = 300

local m = {}

local function full(disk)
    return disk.free < 2 * disk.reserve
end

function m.upload(state)
    if not state.link.up or state.pending.count == 0 then
        return "wait"
    end
    if not state.link.metered then
        return "now"
    end
    local worth_it = state.pending.bytes >= ENOUGH_BYTES or state.pending.age_s >= LONG_ENOUGH_S
    local spent = state.spent.day.bytes >= BYTES_A_DAY
    if not full(state.disk) and (spent or not worth_it) then
        return { wait = ASK_AGAIN_S }
    end
    return { through = state.pending.newest, rate = "64K/s" }
end

local ONE = { count = 1, oldest = 7, newest = 7, bytes = 1000, age_s = 10 }
local HOUR_OLD = { count = 60, oldest = 7, newest = 66, bytes = 60000, age_s = 3600 }
local SIM = { up = true, metered = true }

m.test = {
    { name = "nothing to do", upload = { {} }, gives = "wait" },
    { name = "no link", upload = { { pending = ONE, link = { up = false } } }, gives = "wait" },
    { name = "a free link", upload = { { pending = ONE, link = { up = true } } }, gives = "now" },
    {
        name = "a kilobyte isn't worth it",
        upload = { { pending = ONE, link = SIM } },
        gives = { wait = 300 },
    },
    {
        name = "an hour is",
        upload = { { pending = HOUR_OLD, link = SIM } },
        gives = { through = 66, rate = "64K/s" },
    },
    {
        name = "five megabytes are",
        upload = {
            { pending = { count = 2, oldest = 7, newest = 8, bytes = 5000000 }, link = SIM },
        },
        gives = { through = 8 },
    },
    {
        name = "the day's budget is spent",
        upload = { { pending = HOUR_OLD, link = SIM, spent = { day = { bytes = 50000000 } } } },
        gives = { wait = 300 },
    },
    {
        name = "a full disk goes first",
        upload = {
            {
                pending = ONE,
                link = SIM,
                spent = { day = { bytes = 50000000 } },
                disk = { free = 1000, reserve = 1000 },
            },
        },
        gives = { through = 7 },
    },
}

return m
